package bench;

import java.util.HashMap;
import java.util.Map;

/** What to do: {@code key=value} words, as the harness writes them. A rate of 0 is as fast as it goes. */
final class Job {
    final String url;
    final String user;
    final String password;
    /** Queues are called this and the number of their pair. */
    final String queues;
    final boolean persistent;
    final boolean transacted;
    final boolean optimizeAcknowledge;
    final int pairs;
    final int messagesPerPair;
    final int batch;
    final int bodyBytes;
    /** At most so many messages of a pair are between producer and consumer, unless there is a rate. */
    final int inFlightPerPair;
    final double ratePerS;
    final long stallAfterS;

    Job(String[] words) {
        Map<String, String> named = new HashMap<>();
        for (String word : words) {
            int at = word.indexOf('=');
            if (at > 0) {
                named.put(word.substring(0, at), word.substring(at + 1));
            }
        }
        url = named.get("url");
        user = named.get("user");
        password = named.get("password");
        queues = named.get("queues");
        persistent = Boolean.parseBoolean(named.get("persistent"));
        transacted = Boolean.parseBoolean(named.get("transacted"));
        optimizeAcknowledge = Boolean.parseBoolean(named.get("optimizeAcknowledge"));
        pairs = Integer.parseInt(named.get("pairs"));
        messagesPerPair = Integer.parseInt(named.get("messages")) / pairs;
        batch = Integer.parseInt(named.get("batch"));
        bodyBytes = Integer.parseInt(named.get("bodyBytes"));
        inFlightPerPair = Integer.parseInt(named.get("inFlightPerPair"));
        ratePerS = Double.parseDouble(named.get("rate"));
        stallAfterS = Long.parseLong(named.get("stallAfterS"));
    }

    int messages() {
        return messagesPerPair * pairs;
    }

    /** So many messages are due at the same moment: all that one commit covers. */
    int dueTogether() {
        return transacted ? batch : 1;
    }
}
