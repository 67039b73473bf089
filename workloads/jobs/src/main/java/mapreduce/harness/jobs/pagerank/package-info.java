/**
 * PageRank over a graph of pages and links, one job for each iteration; or two, over a list of
 * links ({@link mapreduce.harness.jobs.pagerank.Naive}).
 *
 * <p>A graph is text, one line for each page, and every job reads and writes this same form:
 *
 * <pre>page TAB rank TAB page page page ...</pre>
 *
 * <p>The name of a page is any text without tabs and spaces; the generator writes numbers of ten
 * digits. The rank is in units of the mean rank, so the ranks of N pages add up to N, as in Brin
 * and Page (1998); divided by N it is a probability. An empty rank is 1. Jobs write ranks with
 * twenty characters, so that each job reads as many bytes as the one before it. The pages linked to
 * follow, with one space between two of them; a page may have none.
 *
 * <p>One iteration with damping d gives the page v
 *
 * <pre>rank'(v) = (1 - d) + d * (sum of rank(u) / links(u) over links u to v + dangling / N)</pre>
 *
 * <p>where <i>dangling</i> is the sum of the ranks of pages without links, which is spread evenly
 * over all pages. A link that is there twice counts twice, and a link of a page to itself counts as
 * any other. A page without a link to it stays. A link to a page that has no line of its own is an
 * error: {@link mapreduce.harness.jobs.pagerank.Adjacency} makes complete graphs of plain lists of
 * links.
 */
package mapreduce.harness.jobs.pagerank;
