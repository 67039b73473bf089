package mapreduce.harness.jobs.pagerank;

import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.io.WritableUtils;

/**
 * What is sent to a page: a share of rank, or its own links; or to a reduce: the totals of the
 * graph.
 */
public final class Share implements Writable {
  /** What a share is. */
  enum Kind {
    /** Rank that comes over links. */
    RANK,
    /** The links of the page. */
    LINKS,
    /** Pages, and the rank of those without links; goes to every reduce, before all pages. */
    TOTALS
  }

  private static final Kind[] KINDS = Kind.values();
  private static final byte[] NOTHING = {};

  private Kind kind = Kind.RANK;
  private double rank;
  private long pages;
  private int partition;
  private byte[] links = NOTHING;

  Kind kind() {
    return kind;
  }

  /** The rank that comes over links, or that of all pages without links. */
  double rank() {
    return rank;
  }

  long pages() {
    return pages;
  }

  int partition() {
    return partition;
  }

  byte[] links() {
    return links;
  }

  void setRank(double value) {
    kind = Kind.RANK;
    rank = value;
  }

  void setLinks(byte[] adjacency) {
    kind = Kind.LINKS;
    links = adjacency;
  }

  void setTotals(int reduce, long pageCount, double dangling) {
    kind = Kind.TOTALS;
    partition = reduce;
    pages = pageCount;
    rank = dangling;
  }

  @Override
  public void write(DataOutput out) throws IOException {
    out.writeByte(kind.ordinal());
    switch (kind) {
      case RANK -> out.writeDouble(rank);
      case LINKS -> {
        WritableUtils.writeVInt(out, links.length);
        out.write(links);
      }
      case TOTALS -> {
        WritableUtils.writeVInt(out, partition);
        WritableUtils.writeVLong(out, pages);
        out.writeDouble(rank);
      }
    }
  }

  @Override
  public void readFields(DataInput in) throws IOException {
    kind = KINDS[in.readByte()];
    switch (kind) {
      case RANK -> rank = in.readDouble();
      case LINKS -> {
        links = new byte[WritableUtils.readVInt(in)];
        in.readFully(links);
      }
      case TOTALS -> {
        partition = WritableUtils.readVInt(in);
        pages = WritableUtils.readVLong(in);
        rank = in.readDouble();
      }
    }
  }
}
