package interop;

import java.util.function.BiConsumer;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;

/** How much a consumer is given before it asks: what another one still gets. */
final class Windows implements Program {
    private static final int SIZE_BYTES = 1_000;

    @Override
    public void list(BiConsumer<String, Body> cases) {
        for (int window : new int[] {-1, 0, 1, 3_000, 1_000_000}) {
            cases.accept("unread " + window, stage -> unread(stage, window));
            cases.accept("read and acknowledged " + window, stage -> acknowledged(stage, window));
        }
        // Not with small windows: the client gives credit and asks in two threads, and may ask first.
        for (int window : new int[] {-1, 0, 1_000_000}) {
            cases.accept("receive once " + window, stage -> once(stage, window));
        }
        cases.accept("two in turn without a window", Windows::twoInTurn);
        cases.accept("a message larger than the window", Windows::larger);
        cases.accept("window of the address", Windows::ofTheAddress);
        cases.accept("not started", Windows::notStarted);
        cases.accept("stopped and started", Windows::stopped);
        cases.accept("acknowledged late", Windows::late);
    }

    /** Bytes of equal size, with their number as a property. */
    private static void send(Stage stage, int count) throws JMSException {
        Session session = stage.session(Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(stage.queue());
        for (int number = 1; number <= count; number++) {
            BytesMessage message = session.createBytesMessage();
            message.writeBytes(new byte[SIZE_BYTES]);
            message.setIntProperty("n", number);
            producer.send(message);
        }
        session.commit();
    }

    /** What a consumer without a window of its own still gets, by number. */
    private static void others(Stage stage, String label) throws JMSException {
        try (Connection connection = Stage.factory(stage.url("consumerWindowSize=0")).createConnection()) {
            connection.start();
            MessageConsumer consumer =
                    connection.createSession(false, Session.AUTO_ACKNOWLEDGE).createConsumer(stage.queue());
            StringBuilder seen = new StringBuilder();
            for (Message one = consumer.receiveNoWait(); one != null; one = consumer.receiveNoWait()) {
                seen.append(' ').append(one.getIntProperty("n")).append('#').append(one.getIntProperty("JMSXDeliveryCount"));
            }
            stage.say("%s:%s", label, seen);
        }
    }

    private static void unread(Stage stage, int window) throws Exception {
        Session session = stage.auto("consumerWindowSize=" + window);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        send(stage, 10);
        others(stage, "others get");
        consumer.close();
        others(stage, "after it closed");
    }

    private static void acknowledged(Stage stage, int window) throws Exception {
        Session session = stage.auto("consumerWindowSize=" + window);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        send(stage, 10);
        for (int count = 0; count < 2; count++) {
            stage.say("got %d", consumer.receive(Scene.LONG_MS).getIntProperty("n"));
        }
        session.createQueue(stage.own(""));
        others(stage, "others get");
        consumer.close();
        others(stage, "after it closed");
    }

    private static void once(Stage stage, int window) throws Exception {
        MessageConsumer consumer = stage.auto("consumerWindowSize=" + window).createConsumer(stage.queue());
        stage.say("empty: %s", consumer.receive(50));
        stage.say("empty: %s", consumer.receiveNoWait());
        send(stage, 3);
        for (int count = 0; count < 3; count++) {
            stage.say("got %d", consumer.receiveNoWait().getIntProperty("n"));
        }
        stage.say("empty: %s", consumer.receiveNoWait());
    }

    private static void twoInTurn(Stage stage) throws Exception {
        MessageConsumer first = stage.auto("consumerWindowSize=0").createConsumer(stage.queue());
        MessageConsumer second = stage.auto("consumerWindowSize=0").createConsumer(stage.queue());
        send(stage, 6);
        for (int count = 0; count < 3; count++) {
            stage.say("first %d", first.receive(Scene.LONG_MS).getIntProperty("n"));
            stage.say("second %d", second.receive(Scene.LONG_MS).getIntProperty("n"));
        }
    }

    private static void larger(Stage stage) throws Exception {
        MessageConsumer consumer = stage.auto("consumerWindowSize=100").createConsumer(stage.queue());
        send(stage, 4);
        for (int count = 0; count < 4; count++) {
            stage.say("got %d", consumer.receive(Scene.LONG_MS).getIntProperty("n"));
        }
    }

    private static void ofTheAddress(Stage stage) throws Exception {
        Session session = stage.auto();
        MessageConsumer consumer = session.createConsumer(stage.queue(".pulled"));
        stage.send(stage.queue(".pulled"), 4);
        stage.drain("others get", stage.queue(".pulled"));
        stage.send(stage.queue(".pulled"), 5, 6);
        stage.receive("got", consumer, 2);
    }

    private static void notStarted(Stage stage) throws Exception {
        Connection connection = stage.closed(Stage.factory(stage.url()).createConnection());
        MessageConsumer consumer =
                connection.createSession(false, Session.AUTO_ACKNOWLEDGE).createConsumer(stage.queue());
        send(stage, 3);
        others(stage, "others get");
        send(stage, 2);
        connection.start();
        stage.say("got %d", consumer.receive(Scene.LONG_MS).getIntProperty("n"));
        stage.say("got %d", consumer.receive(Scene.LONG_MS).getIntProperty("n"));
    }

    private static void stopped(Stage stage) throws Exception {
        Connection connection = stage.connect("consumerWindowSize=0");
        MessageConsumer consumer =
                connection.createSession(false, Session.AUTO_ACKNOWLEDGE).createConsumer(stage.queue());
        send(stage, 4);
        stage.say("got %d", consumer.receive(Scene.LONG_MS).getIntProperty("n"));
        connection.stop();
        others(stage, "others get");
        send(stage, 2);
        connection.start();
        stage.say("got %d", consumer.receive(Scene.LONG_MS).getIntProperty("n"));
    }

    private static void late(Stage stage) throws Exception {
        Session session = stage.session(Session.CLIENT_ACKNOWLEDGE, "consumerWindowSize=3000");
        MessageConsumer consumer = session.createConsumer(stage.queue());
        send(stage, 10);
        Message last = null;
        for (int count = 0; count < 10; count++) {
            last = consumer.receive(Scene.LONG_MS);
        }
        stage.say("got %d", last.getIntProperty("n"));
        last.acknowledge();
        session.close();
        others(stage, "left");
    }
}
