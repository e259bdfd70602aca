package interop;

import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.Session;

/** What comes first, what receiveNoWait must not miss, and what browsers see. */
final class Order implements Program {
    @Override
    public void list(BiConsumer<String, Body> cases) {
        for (String window : new String[] {"0", "1000", "1048576"}) {
            cases.accept("receiveNoWait after each send, window " + window, stage -> afterEachSend(stage, window));
        }
        cases.accept("receiveNoWait under load", Order::underLoad);
        cases.accept("priorities", Order::priorities);
        cases.accept("priorities and CLIENT acknowledgement", Order::acknowledged);
        cases.accept("priorities with a rollback", Order::rolledBack);
        cases.accept("browse", Order::browses);
        cases.accept("browse with a selector", Order::browsesSome);
        cases.accept("browse beside a consumer", Order::besideConsumer);
        cases.accept("browse many", Order::browsesMany);
        cases.accept("browse after a rollback", Order::browsesCounts);
        cases.accept("two browsers of one session", Order::twoBrowsers);
    }

    private static void afterEachSend(Stage stage, String window) throws Exception {
        MessageConsumer consumer = stage.auto("consumerWindowSize=" + window).createConsumer(stage.queue());
        Session session = stage.auto();
        MessageProducer producer = session.createProducer(stage.queue());
        int missed = 0;
        for (int number = 0; number < 200; number++) {
            producer.send(session.createTextMessage("m" + number));
            missed += consumer.receiveNoWait() == null ? 1 : 0;
        }
        stage.say("missed %d", missed);
        stage.rest("rest", consumer);
    }

    private static void underLoad(Stage stage) throws Exception {
        List<Thread> senders = new ArrayList<>();
        for (int sender = 0; sender < 3; sender++) {
            Session session = stage.auto("blockOnDurableSend=false");
            MessageProducer producer = session.createProducer(stage.queue());
            int me = sender;
            Thread thread = new Thread(() -> {
                try {
                    for (int number = 0; number < 200; number++) {
                        Message message = session.createTextMessage("m");
                        message.setIntProperty("sender", me);
                        message.setIntProperty("n", number);
                        producer.send(message);
                    }
                    session.close();
                } catch (Exception error) {
                    stage.say("%s", stage.describe(error));
                }
            });
            senders.add(thread);
        }
        senders.forEach(Thread::start);
        MessageConsumer consumer = stage.auto().createConsumer(stage.queue());
        int[] next = new int[3];
        boolean inOrder = take(consumer, next);
        for (Thread sender : senders) {
            sender.join();
        }
        inOrder &= take(consumer, next);
        stage.say("%d %d %d, in order: %s", next[0], next[1], next[2], inOrder);
    }

    /** Takes all there is. Says whether each sender's came in order. */
    private static boolean take(MessageConsumer consumer, int[] next) throws Exception {
        boolean inOrder = true;
        for (Message one = consumer.receiveNoWait(); one != null; one = consumer.receiveNoWait()) {
            inOrder &= one.getIntProperty("n") == next[one.getIntProperty("sender")]++;
        }
        return inOrder;
    }

    private static void sendMixed(Stage stage) throws Exception {
        Session session = stage.session(Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(stage.queue());
        int[] order = {4, 0, 9, 5, 4, 9, 1, 0, 7, 4};
        for (int index = 0; index < order.length; index++) {
            producer.send(session.createTextMessage("m" + (index + 1) + "p" + order[index]), 2, order[index], 0);
        }
        session.commit();
    }

    private static void priorities(Stage stage) throws Exception {
        sendMixed(stage);
        stage.drain("taken", stage.queue());
    }

    private static void acknowledged(Stage stage) throws Exception {
        sendMixed(stage);
        Session session = stage.session(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        List<Message> got = stage.receive("received", consumer, 4);
        got.get(2).acknowledge();
        stage.receive("received", consumer, 2);
        session.close();
        stage.drain("left", stage.queue());
    }

    private static void rolledBack(Stage stage) throws Exception {
        sendMixed(stage);
        Session session = stage.session(Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        stage.receive("received", consumer, 4);
        session.rollback();
        stage.rest("then", consumer);
        session.commit();
    }

    private static void browses(Stage stage) throws Exception {
        stage.browse("empty", stage.queue());
        stage.send(stage.queue(), 4);
        stage.browse("once", stage.queue());
        stage.browse("twice", stage.queue());
        stage.drain("left", stage.queue());
    }

    private static void browsesSome(Stage stage) throws Exception {
        sendMixed(stage);
        stage.browse("high", stage.auto().createBrowser(stage.queue(), "JMSPriority > 4"));
        stage.browse("none", stage.auto().createBrowser(stage.queue(), "1 = 2"));
        stage.drain("left", stage.queue());
    }

    private static void besideConsumer(Stage stage) throws Exception {
        stage.send(stage.queue(), 5);
        Session session = stage.session(Session.CLIENT_ACKNOWLEDGE, "consumerWindowSize=0");
        MessageConsumer consumer = session.createConsumer(stage.queue());
        stage.receive("received", consumer, 2);
        stage.browse("browsed", stage.queue());
        stage.receive("received", consumer, 1);
        session.close();
        stage.browse("browsed", stage.queue());
        stage.drain("left", stage.queue());
    }

    private static void browsesMany(Stage stage) throws Exception {
        stage.send(stage.queue(), 500);
        Queue queue = stage.queue();
        int count = 0;
        for (var found = stage.auto().createBrowser(queue).getEnumeration();
                found.hasMoreElements(); count++) {
            found.nextElement();
        }
        stage.say("browsed %d", count);
    }

    private static void browsesCounts(Stage stage) throws Exception {
        stage.send(stage.queue(), 3);
        Session session = stage.session(Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        stage.receive("received", consumer, 2);
        session.rollback();
        session.close();
        stage.browse("browsed", stage.queue());
        stage.drain("left", stage.queue());
    }

    private static void twoBrowsers(Stage stage) throws Exception {
        stage.send(stage.queue(), 3);
        Session session = stage.auto();
        stage.browse("first", session.createBrowser(stage.queue()));
        stage.browse("second", session.createBrowser(stage.queue(), "JMSPriority = 4"));
        stage.receive("and a consumer", session.createConsumer(stage.queue()), 3);
    }
}
