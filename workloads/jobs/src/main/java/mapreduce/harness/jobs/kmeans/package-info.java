/**
 * K-means after Lloyd: iterations until no centre moves farther than a given distance, each a job.
 *
 * <p>Points are records of fixed size without a frame: one double of eight bytes for each
 * dimension, the highest byte first (as Java's DataOutput and Hadoop write them). Lines of numbers
 * separated by commas are read instead where {@code kmeans.format} is {@code csv}. The start is the
 * first points of the input, files in the order of their names.
 *
 * <p>A point belongs to the nearest centre, of equally near ones to that with the lower number. A
 * centre becomes the mean of its points; one without points keeps its place.
 *
 * <p>Centres are text, one line for each: {@code number TAB points TAB coordinate,coordinate,...},
 * where points is how many the mean was made of, and coordinates read back to the same doubles.
 */
package mapreduce.harness.jobs.kmeans;
