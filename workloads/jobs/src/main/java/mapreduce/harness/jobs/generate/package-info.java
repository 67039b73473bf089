/**
 * Generators of inputs, as MapReduce jobs without reduces.
 *
 * <p>An input is a row of records, numbered from 0, and every record is a function of the seed and
 * its number alone. So all its bytes, one file after the other, are the same however many files and
 * maps it is made in, and however often a map is tried. To add an input, write a {@link
 * mapreduce.harness.jobs.generate.Content}: it gets the configuration and the seed once, and then
 * appends the bytes of each record that it is asked for to a {@link
 * mapreduce.harness.jobs.generate.Buffer}, drawing its chances from a {@link
 * mapreduce.harness.jobs.generate.Draws} that it sets to (seed, number) first. {@link
 * mapreduce.harness.jobs.generate.Generate} does the rest: one map for each file, records spread
 * evenly, their bytes one behind the other without a frame. On the Python side {@code
 * harness/clusters/workloads/files.py} makes the command.
 *
 * <p>{@link mapreduce.harness.jobs.generate.Show} prints records without Hadoop's file system;
 * tests look at those.
 */
package mapreduce.harness.jobs.generate;
