package mapreduce.harness.gpu;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.EOFException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.FileSplit;

/**
 * Splits of whole records; a map gets pieces of its split, whole records, with the number of the
 * first.
 *
 * <p>No split is larger than a block of the file system, and none ends inside a record.
 */
public class BlockInputFormat extends FileInputFormat<LongWritable, BytesWritable> {
  private static final int PIECE = 1 << 20;

  @Override
  public List<InputSplit> getSplits(JobContext job) throws IOException {
    Configuration conf = job.getConfiguration();
    long record = Records.bytes(conf);
    List<InputSplit> splits = new ArrayList<>();
    long first = 0;
    for (FileStatus file : Records.files(job)) {
      long length = file.getLen();
      long whole = Math.max(1, file.getBlockSize() / record) * record;
      BlockLocation[] blocks =
          file.getPath().getFileSystem(conf).getFileBlockLocations(file, 0, length);
      for (long start = 0; start < length; start += whole) {
        String[] hosts = blocks[getBlockIndex(blocks, start)].getHosts();
        long size = Math.min(whole, length - start);
        splits.add(new Part(file.getPath(), start, size, hosts, first + start / record));
      }
      first += length / record;
    }
    return splits;
  }

  @Override
  public RecordReader<LongWritable, BytesWritable> createRecordReader(
      InputSplit split, TaskAttemptContext context) {
    return new Pieces();
  }

  /** A part of a file that knows the number of its first record. */
  public static final class Part extends FileSplit {
    private long first;

    /** For Hadoop, which fills it by {@link #readFields}. */
    public Part() {}

    Part(Path path, long start, long length, String[] hosts, long first) {
      super(path, start, length, hosts);
      this.first = first;
    }

    long first() {
      return first;
    }

    @Override
    public void write(DataOutput out) throws IOException {
      super.write(out);
      out.writeLong(first);
    }

    @Override
    public void readFields(DataInput in) throws IOException {
      super.readFields(in);
      first = in.readLong();
    }
  }

  private static final class Pieces extends RecordReader<LongWritable, BytesWritable> {
    private final LongWritable number = new LongWritable();
    private final BytesWritable piece = new BytesWritable();
    private FSDataInputStream in;
    private Part split;
    private long record;
    private long most;
    private long done;

    @Override
    public void initialize(InputSplit given, TaskAttemptContext context) throws IOException {
      Configuration conf = context.getConfiguration();
      split = (Part) given;
      record = Records.bytes(conf);
      most = Math.max(1, Math.min(PIECE, conf.getLong(BlockMapper.BLOCK, PIECE)) / record) * record;
      FileSystem files = split.getPath().getFileSystem(conf);
      in = files.open(split.getPath());
      in.seek(split.getStart());
    }

    @Override
    public boolean nextKeyValue() throws IOException {
      int size = (int) Math.min(most, split.getLength() - done);
      if (size == 0) {
        return false;
      }
      piece.setSize(size);
      try {
        in.readFully(piece.getBytes(), 0, size);
      } catch (EOFException early) {
        long at = split.getStart() + done;
        throw new IOException(
            split.getPath() + " ends inside the " + size + " bytes from byte " + at, early);
      }
      number.set(split.first() + done / record);
      done += size;
      return true;
    }

    @Override
    public LongWritable getCurrentKey() {
      return number;
    }

    @Override
    public BytesWritable getCurrentValue() {
      return piece;
    }

    @Override
    public float getProgress() {
      return split.getLength() == 0 ? 1 : (float) done / split.getLength();
    }

    @Override
    public void close() throws IOException {
      if (in != null) {
        in.close();
      }
    }
  }
}
