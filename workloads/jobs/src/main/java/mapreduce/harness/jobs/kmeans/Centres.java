package mapreduce.harness.jobs.kmeans;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;

/** Centres, and of how many points each is the mean. */
final class Centres {
  private final double[][] places;
  private final long[] points;

  Centres(double[][] places, long[] points) {
    this.places = places;
    this.points = points;
  }

  /** The number of the nearest centre, the lower one of two that are equally near. */
  int nearest(double[] point) {
    int best = 0;
    double least = Double.POSITIVE_INFINITY;
    for (int i = 0; i < places.length; i++) {
      double[] place = places[i];
      double distance = 0;
      for (int d = 0; d < place.length; d++) {
        double difference = point[d] - place[d];
        distance += difference * difference;
      }
      if (distance < least) {
        least = distance;
        best = i;
      }
    }
    return best;
  }

  /** These centres, those that have no points yet; to be moved to the means by {@link #read}. */
  Centres next() {
    return new Centres(places.clone(), new long[places.length]);
  }

  /** The farthest that a centre lies from that of the same number. */
  double shift(Centres others) {
    double most = 0;
    for (int i = 0; i < places.length; i++) {
      double square = 0;
      for (int d = 0; d < places[i].length; d++) {
        double difference = places[i][d] - others.places[i][d];
        square += difference * difference;
      }
      most = Math.max(most, Math.sqrt(square));
    }
    return most;
  }

  /** All lines. */
  String text() {
    StringBuilder lines = new StringBuilder();
    for (int i = 0; i < places.length; i++) {
      lines.append(i).append('\t').append(line(points[i], places[i])).append('\n');
    }
    return lines.toString();
  }

  /** What follows the number of a centre in its line. */
  static String line(long points, double[] place) {
    return points
        + "\t"
        + DoubleStream.of(place).mapToObj(Double::toString).collect(Collectors.joining(","));
  }

  /** Takes over the centres that a stream of lines names. */
  void read(InputStream lines) throws IOException {
    BufferedReader reader =
        new BufferedReader(new InputStreamReader(lines, StandardCharsets.US_ASCII));
    for (String line = reader.readLine(); line != null; line = reader.readLine()) {
      String[] fields = line.split("\t");
      int number = Integer.parseInt(fields[0]);
      points[number] = Long.parseLong(fields[1]);
      String[] coordinates = fields[2].split(",");
      places[number] = new double[coordinates.length];
      for (int d = 0; d < coordinates.length; d++) {
        places[number][d] = Double.parseDouble(coordinates[d]);
      }
    }
  }

  /** This many centres out of a stream that names all of them. */
  static Centres of(int count, InputStream lines) throws IOException {
    Centres centres = new Centres(new double[count][], new long[count]);
    centres.read(lines);
    return centres;
  }
}
