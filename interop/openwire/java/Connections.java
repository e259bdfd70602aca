package interop;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.BiConsumer;
import javax.jms.Connection;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.command.BrokerInfo;

/** Many connections, and connections on which nothing happens. */
final class Connections implements Program {
    private static final int MANY = 200;

    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("two hundred at once", Connections::many);
        cases.accept("opened and closed two hundred times", stage -> {
            for (int index = 0; index < MANY; index++) {
                Connection connection = stage.connect();
                connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
                connection.close();
            }
            stage.say("done");
        });
        for (int duration : new int[] {0, 1_000, 3_000}) {
            cases.accept("idle with an inactivity limit of " + duration, stage -> idle(stage, duration));
        }
        cases.accept("a silent peer is dropped", stage -> {
            try (RawPeer peer = new RawPeer(stage, 1_000)) {
                peer.negotiate();
                stage.say("%s", peer.seen(12_000));
            }
        });
        cases.accept("a silent peer without limit stays", stage -> {
            try (RawPeer peer = new RawPeer(stage, 0)) {
                peer.negotiate();
                stage.say("%s", peer.seen(3_000));
            }
        });
        for (String options : new String[] {
            "wireFormat.tightEncodingEnabled=false", "wireFormat.cacheEnabled=false", "wireFormat.version=11",
            "wireFormat.version=10", "wireFormat.version=9", "wireFormat.version=1", "wireFormat.cacheSize=200",
            "wireFormat.tcpNoDelayEnabled=false", "wireFormat.stackTraceEnabled=false", "wireFormat.maxFrameSize=100000",
        }) {
            cases.accept("with " + options, stage -> talks(stage, options));
        }
        cases.accept("meta data", stage -> {
            ActiveMQConnection connection = stage.connect();
            Stage.until(() -> connection.getBrokerName() != null);
            stage.say("broker name %s, id %s", connection.getBrokerName(), connection.getBrokerInfo().getBrokerId() != null);
            BrokerInfo broker = connection.getBrokerInfo();
            stage.say("fault tolerant %s, duplex %s, no peers %s", broker.isFaultTolerantConfiguration(),
                    broker.isDuplexConnection(), broker.getPeerBrokerInfos() == null);
            stage.note("url %s", connection.getBrokerInfo().getBrokerURL());
        });
    }

    private static void many(Stage stage) throws Exception {
        stage.allow(120_000);
        ExecutorService threads = Executors.newFixedThreadPool(16);
        List<MessageConsumer> consumers = Collections.synchronizedList(new ArrayList<>());
        List<Session> sessions = Collections.synchronizedList(new ArrayList<>());
        all(threads, () -> {
            Session session = stage.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
            consumers.add(session.createConsumer(stage.topic()));
            sessions.add(session);
            return null;
        });
        stage.say("open: %d", consumers.size());
        stage.send(stage.topic(), 5);
        int right = 0;
        for (MessageConsumer consumer : consumers) {
            boolean inOrder = true;
            for (int number = 1; number <= 5; number++) {
                inOrder &= Stage.body(consumer.receive(Stage.LONG_MS)).equals("m" + number);
            }
            right += inOrder ? 1 : 0;
        }
        stage.say("received all in order: %d", right);
        all(threads, () -> {
            Session session = sessions.remove(0);
            session.createProducer(stage.queue()).send(session.createTextMessage("m"));
            session.close();
            return null;
        });
        MessageConsumer consumer = stage.connect("jms.prefetchPolicy.all=0").createSession(false, 1)
                .createConsumer(stage.queue());
        stage.say("sent: %d", Stage.rest(consumer).size());
        threads.shutdown();
    }

    private static void all(ExecutorService threads, Callable<Void> one) throws Exception {
        List<Future<Void>> started = new ArrayList<>();
        for (int index = 0; index < MANY; index++) {
            started.add(threads.submit(one));
        }
        for (Future<Void> future : started) {
            future.get();
        }
    }

    private static void idle(Stage stage, int duration) throws Exception {
        ActiveMQConnection connection = stage.connect(
                "wireFormat.maxInactivityDuration=" + duration, "wireFormat.maxInactivityDurationInitalDelay=100");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        // Several times the limit; that time passes is what this is about.
        Thread.sleep(4_000);
        stage.send(stage.queue(), 1);
        stage.receive("still there", consumer, 1);
        stage.say("transport failed: %s", connection.isTransportFailed());
    }

    private static void talks(Stage stage, String options) throws Exception {
        Connection connection = stage.connect(options);
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        session.createProducer(stage.queue()).send(session.createTextMessage("m1"));
        session.commit();
        stage.receive("received", session.createConsumer(stage.queue()), 1);
        session.commit();
        stage.browse("left", session.createBrowser(stage.queue()));
        session.commit();
        Session other = connection.createSession(false, 1);
        stage.attempt("error", () -> other.unsubscribe("none"));
    }
}
