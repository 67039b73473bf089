package mapreduce.harness.gpu;

import java.io.IOException;
import java.nio.ByteBuffer;
import mapreduce.harness.ltrace.record.Trace;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.mapreduce.Mapper;

/**
 * Collects the records of a split into blocks, and hands each block to the device.
 *
 * @param <K> key of what comes out
 * @param <V> value of what comes out
 */
abstract class BlockMapper<K, V> extends Mapper<LongWritable, BytesWritable, K, V> {
  /** Property: bytes of a block at most, whole records; one record at least. */
  static final String BLOCK = "gpu.block";

  private OpenDevice device;
  private ByteBuffer block;
  private long record;
  private long first;
  private boolean well;

  /** Prepare for blocks of at most this many records. */
  abstract void prepare(OpenDevice device, long records, Context context)
      throws IOException, InterruptedException;

  /** Work on a block of whole records, the first of which has this number in all the input. */
  abstract void work(OpenDevice device, ByteBuffer block, long records, long first, Context context)
      throws IOException, InterruptedException;

  @Override
  protected final void setup(Context context) throws IOException, InterruptedException {
    Configuration conf = context.getConfiguration();
    record = Records.bytes(conf);
    long split = Math.max(context.getInputSplit().getLength() / record, 1);
    long records = Math.min(Math.max(conf.getLong(BLOCK, 1 << 20) / record, 1), split);
    device = OpenDevice.open(context);
    try {
      block = device.buffer(records * record);
      prepare(device, records, context);
      well = true;
    } finally {
      if (!well) {
        device.close();
      }
    }
  }

  @Override
  protected final void map(LongWritable number, BytesWritable piece, Context context)
      throws IOException, InterruptedException {
    well = false;
    int at = 0;
    while (at < piece.getLength()) {
      if (block.position() == 0) {
        first = number.get() + at / record;
      }
      at += collect(piece, at);
      if (!block.hasRemaining()) {
        flush(context);
      }
    }
    well = true;
  }

  private int collect(BytesWritable piece, int from) {
    int size = Math.min(block.remaining(), piece.getLength() - from);
    long span = Trace.begin("gpu.block");
    block.put(piece.getBytes(), from, size);
    Trace.end(span, size);
    return size;
  }

  private void flush(Context context) throws IOException, InterruptedException {
    work(device, block, block.position() / record, first, context);
    block.clear();
  }

  @Override
  protected final void cleanup(Context context) throws IOException, InterruptedException {
    try {
      if (well && block.position() > 0) {
        flush(context);
      }
    } finally {
      if (block != null) {
        device.close();
      }
    }
  }

  /** Where a record lies, for messages: its number in its file, the file, its byte there. */
  final String place(long number, Context context) {
    BlockInputFormat.Part split = (BlockInputFormat.Part) context.getInputSplit();
    long at = split.getStart() + (number - split.first()) * record;
    return "record " + at / record + " of " + split.getPath() + " (byte " + at + ")";
  }
}
