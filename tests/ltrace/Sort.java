import org.apache.hadoop.util.IndexedSortable;
import org.apache.hadoop.util.QuickSort;

/** Calls a class that has a hook; tests/ltrace/test_weaver.py starts it. */
public final class Sort implements IndexedSortable {

  private final int[] numbers = {3, 1, 2};

  public static void main(String[] args) {
    Sort sort = new Sort();
    new QuickSort().sort(sort, 0, sort.numbers.length, () -> {});
    System.out.println(java.util.Arrays.toString(sort.numbers));
  }

  @Override
  public int compare(int i, int j) {
    return Integer.compare(numbers[i], numbers[j]);
  }

  @Override
  public void swap(int i, int j) {
    int number = numbers[i];
    numbers[i] = numbers[j];
    numbers[j] = number;
  }
}
