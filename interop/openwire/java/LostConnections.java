package interop;

import java.io.IOException;
import java.util.concurrent.CountDownLatch;
import java.util.function.BiConsumer;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQMessageConsumer;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.transport.TransportListener;

/** Connections that are lost again and again, and what a consumer may have once its client has come back. */
final class LostConnections implements Program {
    private static final int LIVES = 10;
    private static final int SENT = 20;

    @Override
    public void list(BiConsumer<String, Body> cases) {
        for (Acknowledgement.Mode mode : new Acknowledgement.Mode[] {
            Acknowledgement.Mode.AUTO, Acknowledgement.Mode.CLIENT, Acknowledgement.Mode.TRANSACTED
        }) {
            for (int prefetch : new int[] {10, 1000}) {
                cases.accept(mode + " prefetch " + prefetch + " lost ten times", stage -> {
                    stage.empty(new ActiveMQQueue("ActiveMQ.DLQ"));
                    lose(stage, mode, prefetch);
                    stage.drain("left", stage.queue(), mode == Acknowledgement.Mode.AUTO ? SENT - LIVES : SENT);
                    Redelivery.dead(stage, "ActiveMQ.DLQ");
                });
            }
        }
        cases.accept("given up by the next client", stage -> {
            stage.empty(new ActiveMQQueue("ActiveMQ.DLQ"));
            lose(stage, Acknowledgement.Mode.CLIENT, 10);
            Session session = stage.connect().createSession(true, Session.SESSION_TRANSACTED);
            MessageConsumer consumer = session.createConsumer(stage.queue());
            // Those that were lost too often: a transacted consumer tells the broker that they are poison.
            stage.receive("received", consumer, SENT - 10);
            session.commit();
            stage.drain("left", stage.queue());
            Redelivery.dead(stage, "ActiveMQ.DLQ");
        });
        cases.accept("prefetch after a failover", stage -> comesBack(stage, ".few", "a=b"));
        cases.accept("prefetch of its own after a failover", stage ->
                comesBack(stage, ".few", "jms.prefetchPolicy.all=5"));
    }

    /** A process that takes one message and dies, time and again; what else it had lay in its client. */
    private static void lose(Stage stage, Acknowledgement.Mode mode, int prefetch) throws Exception {
        stage.allow(120_000);
        stage.send(stage.queue(), SENT);
        for (int life = 1; life <= LIVES; life++) {
            Cut cut = new Cut(stage.host(), stage.port());
            String url = Stage.url("127.0.0.1", cut.port(), "jms.prefetchPolicy.all=" + prefetch,
                    "jms.redeliveryPolicy.maximumRedeliveries=-1");
            ActiveMQConnection connection = stage.started(stage.own(""), url);
            Session session = mode.open(connection);
            MessageConsumer consumer = session.createConsumer(stage.queue());
            Message message = consumer.receive(Stage.LONG_MS);
            stage.say("life %d: %s", life, Stage.show(message));
            Stage.barrier(connection);
            boolean acknowledges = mode == Acknowledgement.Mode.AUTO;
            int there = acknowledges ? SENT - life + 1 : SENT;
            int window = acknowledges ? prefetch + 1 : prefetch;
            Stage.ready(consumer, Math.min(there, window) - 1);
            cut.cut();
            cut.close();
            stage.gone(stage.own(""));
        }
    }

    /** The wire breaks; the client comes back by another, with all that it had open. */
    private static void comesBack(Stage stage, String suffix, String option) throws Exception {
        Cut cut = new Cut(stage.host(), stage.port());
        String url = "failover:(tcp://127.0.0.1:" + cut.port() + ",tcp://" + stage.host() + ":" + stage.port()
                + ")?randomize=false&initialReconnectDelay=50&maxReconnectDelay=200&useExponentialBackOff=false"
                + "&jms.closeTimeout=5000" + (option.startsWith("jms") ? "&" + option : "");
        ActiveMQConnection connection = stage.started(null, url);
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(stage.queue(suffix));
        Stage.barrier(connection);
        stage.send(stage.queue(suffix), 9);
        tell(stage, "before", consumer);
        CountDownLatch back = new CountDownLatch(1);
        connection.addTransportListener(new Resumed(back));
        cut.close();
        cut.cut();
        Stage.await(back);
        // What lay in the client is let go of meanwhile, and comes again.
        Thread.sleep(Stage.SHORT_MS);
        tell(stage, "after", consumer);
        Message message = null;
        for (int index = 1; index <= 3; index++) {
            message = consumer.receive(Stage.LONG_MS);
        }
        stage.say("third: %s", Stage.show(message));
        message.acknowledge();
        Stage.barrier(connection);
        tell(stage, "then", consumer);
        connection.close();
        stage.drain("left", stage.queue(suffix));
    }

    private static void tell(Stage stage, String label, MessageConsumer consumer) throws Exception {
        Stage.ready(consumer, 3);
        Thread.sleep(Stage.SHORT_MS);
        stage.say("%s: %d", label, ((ActiveMQMessageConsumer) consumer).getMessageSize());
    }

    private static final class Resumed implements TransportListener {
        private final CountDownLatch back;

        Resumed(CountDownLatch back) {
            this.back = back;
        }

        @Override
        public void onCommand(Object command) {}

        @Override
        public void onException(IOException error) {}

        @Override
        public void transportInterupted() {}

        @Override
        public void transportResumed() {
            back.countDown();
        }
    }
}
