/**
 * Texts, made in pages so that every size is met to the byte: {@link
 * mapreduce.harness.jobs.text.ZipfText} with words as frequent as in real text, {@link
 * mapreduce.harness.jobs.text.RandomText} by the law of Hadoop's RandomTextWriter, and {@link
 * mapreduce.harness.jobs.text.SequenceText} by that law in sequence files.
 */
package mapreduce.harness.jobs.text;
