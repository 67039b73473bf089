package mapreduce.harness.jobs.generate;

import org.apache.hadoop.conf.Configuration;

/**
 * What an input consists of: records that follow from a seed and their numbers.
 *
 * <p>One instance serves one map, and needs a public constructor without arguments.
 */
public interface Content {
  /**
   * Prepares for records of this seed; called once, before all others.
   *
   * <p>Wrong properties are refused with an {@link IllegalArgumentException}; the client asks, too,
   * so that they are refused before a job is submitted.
   *
   * @param conf properties of the generator's command, by names of the content's choice
   */
  void open(Configuration conf, long seed);

  /** Appends what every file begins with, before its records: nothing, unless it says otherwise. */
  default void begin(Buffer out) {}

  /**
   * Appends the bytes of one record.
   *
   * <p>They depend on the properties, the seed and {@code number} alone, never on the records asked
   * for before.
   */
  void write(long number, Buffer out);
}
