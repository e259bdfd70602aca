package bench;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/** Nanoseconds that one thread collects; shown as milliseconds by nearest rank. */
final class Latencies {
    private final long[] nanos;
    private int count;

    Latencies(int most) {
        nanos = new long[most];
    }

    void add(long value) {
        nanos[count++] = value;
    }

    /** As JSON; null when there are none. */
    static String json(List<Latencies> parts) {
        int total = parts.stream().mapToInt(part -> part.count).sum();
        if (total == 0) {
            return "null";
        }
        long[] all = new long[total];
        int end = 0;
        for (Latencies part : parts) {
            System.arraycopy(part.nanos, 0, all, end, part.count);
            end += part.count;
        }
        Arrays.sort(all);
        return String.format(
                Locale.ROOT,
                "{\"count\":%d,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"p999_ms\":%.3f,\"max_ms\":%.3f}",
                total,
                rank(all, 0.5),
                rank(all, 0.99),
                rank(all, 0.999),
                all[total - 1] / 1e6);
    }

    private static double rank(long[] sorted, double share) {
        return sorted[Math.min(sorted.length - 1, (int) (share * sorted.length))] / 1e6;
    }
}
