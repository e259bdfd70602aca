package interop;

import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.function.BiConsumer;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.Topic;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import org.apache.activemq.ActiveMQMessageConsumer;
import org.apache.activemq.ActiveMQSession;
import org.apache.activemq.ActiveMQXAConnection;
import org.apache.activemq.ActiveMQXASession;

/** How the client acknowledges in each of its modes, one short conversation for each. */
final class AcknowledgementRecordings implements Program {
    private static final String AND_AGAIN = "jms.redeliveryPolicy.redeliveryDelay=0";
    private static final String PREFETCH_10 = "jms.prefetchPolicy.all=10";
    private static final int LIFE_MS = 150;

    @Override
    public void list(BiConsumer<String, Body> cases) {
        for (Acknowledgement.Mode mode : Acknowledgement.Mode.values()) {
            String name = mode.name().toLowerCase(Locale.ROOT).replace('_', '-');
            cases.accept("topic-" + name, stage -> published(stage, mode, false));
            cases.accept("durable-" + name, stage -> published(stage, mode, true));
        }
        cases.accept("auto-listener", AcknowledgementRecordings::listener);
        cases.accept("optimised-range", AcknowledgementRecordings::range);
        cases.accept("optimised-time-out", AcknowledgementRecordings::timeOut);
        cases.accept("optimised-timer", AcknowledgementRecordings::timer);
        cases.accept("client-forms", AcknowledgementRecordings::forms);
        cases.accept("client-prefetch-1", stage -> client(stage, 1));
        cases.accept("client-pull", stage -> client(stage, 0));
        cases.accept("transacted-individual",
                stage -> individually(stage, "jms.transactedIndividualAck=true"));
        cases.accept("non-blocking-redelivery",
                stage -> individually(stage, "jms.nonBlockingRedelivery=true"));
        cases.accept("redelivered", AcknowledgementRecordings::redelivered);
        cases.accept("rollback-room", AcknowledgementRecordings::room);
        cases.accept("recovered", AcknowledgementRecordings::recovered);
        cases.accept("poison-range", AcknowledgementRecordings::poisonRange);
        cases.accept("poison-listener", AcknowledgementRecordings::poisonListener);
        cases.accept("poison-on-arrival", AcknowledgementRecordings::poisonOnArrival);
        cases.accept("expired", stage -> expired(stage, Acknowledgement.Mode.AUTO));
        cases.accept("expired-transacted", stage -> expired(stage, Acknowledgement.Mode.TRANSACTED));
        cases.accept("xa-acknowledged", AcknowledgementRecordings::distributed);
        cases.accept("closed-consumer", stage -> closed(stage, false));
        cases.accept("closed-session", stage -> closed(stage, true));
        cases.accept("pull-wait", AcknowledgementRecordings::pullThatWaits);
        cases.accept("browse-pages", AcknowledgementRecordings::pages);
    }

    /** A topic, with prefetch 4 and seven messages; the last one is not taken. */
    private static void published(Stage stage, Acknowledgement.Mode mode, boolean durable) throws JMSException {
        Connection connection = Recording.open(stage, Recording.PREFETCH_4);
        Session sending = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Session session = mode.open(connection);
        Topic topic = stage.topic();
        MessageConsumer consumer =
                durable ? session.createDurableSubscriber(topic, "s") : session.createConsumer(topic);
        Recording.send(sending, topic, 1, 7);
        Recording.receive(consumer, mode, session);
        consumer.close();
        connection.close();
    }

    private static void listener(Stage stage) throws Exception {
        Connection connection = Recording.open(stage, Recording.PREFETCH_4);
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Recording.send(session, stage.queue(), 1, 6);
        CountDownLatch all = new CountDownLatch(6);
        session.createConsumer(stage.queue()).setMessageListener(message -> all.countDown());
        Stage.await(all);
        connection.stop();
        connection.close();
    }

    private static void range(Stage stage) throws JMSException {
        Connection connection = Recording.open(stage, PREFETCH_10, Recording.OPTIMISED, Recording.NEVER_TIMED_OUT);
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Recording.send(session, stage.queue(), 1, 20);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        Recording.receive(consumer, 16);
        consumer.close();
        connection.close();
    }

    /** The second of three comes after more than the 300 ms that are the default. */
    private static void timeOut(Stage stage) throws Exception {
        Connection connection = Recording.open(stage, PREFETCH_10, Recording.OPTIMISED);
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Recording.send(session, stage.queue(), 1, 4);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        Recording.receive(consumer, 1);
        Thread.sleep(500);
        Recording.receive(consumer, 2);
        consumer.close();
        connection.close();
    }

    private static void timer(Stage stage) throws Exception {
        Connection connection = Recording.open(stage, PREFETCH_10, Recording.OPTIMISED, Recording.NEVER_TIMED_OUT,
                "jms.optimizedAckScheduledAckInterval=400");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Recording.send(session, stage.queue(), 1, 4);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        Recording.receive(consumer, 3);
        Thread.sleep(1_000);
        consumer.close();
        connection.close();
    }

    /** The message's, the consumer's and the session's way to acknowledge, with two consumers of one session. */
    private static void forms(Stage stage) throws JMSException {
        Connection connection = Recording.open(stage);
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        Queue first = stage.queue(".a");
        Queue second = stage.queue(".b");
        Recording.send(session, first, 1, 4);
        Recording.send(session, second, 1, 4);
        MessageConsumer one = session.createConsumer(first);
        MessageConsumer two = session.createConsumer(second);
        Recording.receive(one, 2);
        two.receive(Stage.LONG_MS).acknowledge();
        Recording.receive(one, 1);
        Recording.receive(two, 1);
        ((ActiveMQMessageConsumer) one).acknowledge();
        Recording.receive(one, 1);
        ((ActiveMQSession) session).acknowledge();
        Recording.receive(two, 1);
        connection.close();
    }

    private static void client(Stage stage, int prefetch) throws JMSException {
        Connection connection = Recording.open(stage, "jms.prefetchPolicy.all=" + prefetch);
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        Recording.send(session, stage.queue(), 1, 3);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        Recording.receive(consumer, 2);
        consumer.receive(Stage.LONG_MS).acknowledge();
        consumer.close();
        connection.close();
    }

    private static void individually(Stage stage, String option) throws JMSException {
        Connection connection = Recording.open(stage, Recording.PREFETCH_4, Recording.AT_ONCE, AND_AGAIN, option);
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        Recording.send(session, stage.queue(), 1, 7);
        session.commit();
        MessageConsumer consumer = session.createConsumer(stage.queue());
        Recording.receive(consumer, 4);
        session.commit();
        Recording.receive(consumer, 2);
        session.rollback();
        Recording.receive(consumer, 2);
        session.commit();
        consumer.close();
        connection.close();
    }

    private static void redelivered(Stage stage) throws JMSException {
        Connection connection = Recording.open(stage, Recording.PREFETCH_4, Recording.AT_ONCE, AND_AGAIN);
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        Recording.send(session, stage.queue(), 1, 2);
        session.commit();
        MessageConsumer consumer = session.createConsumer(stage.queue());
        for (int time = 1; time <= 3; time++) {
            Recording.receive(consumer, 2);
            session.rollback();
        }
        Recording.receive(consumer, 2);
        session.commit();
        connection.close();
    }

    /** More messages than the broker may send, so that it is seen what a rollback makes room for. */
    private static void room(Stage stage) throws Exception {
        Connection connection = Recording.open(stage, Recording.PREFETCH_4, Recording.AT_ONCE, AND_AGAIN);
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        Recording.send(session, stage.queue(), 1, 12);
        session.commit();
        MessageConsumer consumer = session.createConsumer(stage.queue());
        Recording.receive(consumer, 2);
        Stage.ready(consumer, 4);
        session.rollback();
        Recording.receive(consumer, 2);
        session.commit();
        Stage.barrier(connection);
        Stage.ready(consumer, 4);
        consumer.close();
        connection.close();
    }

    private static void recovered(Stage stage) throws JMSException {
        Connection connection = Recording.open(stage, Recording.PREFETCH_4, Recording.AT_ONCE, AND_AGAIN);
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        Recording.send(session, stage.queue(), 1, 2);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        for (int time = 1; time <= 2; time++) {
            Recording.receive(consumer, 2);
            session.recover();
        }
        Recording.receive(consumer, 1);
        consumer.receive(Stage.LONG_MS).acknowledge();
        connection.close();
    }

    private static void poisonRange(Stage stage) throws JMSException {
        Connection connection = Recording.open(stage, Recording.PREFETCH_4, Recording.POISON_AT_ONCE);
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        Recording.send(session, stage.queue(), 1, 3);
        session.commit();
        MessageConsumer consumer = session.createConsumer(stage.queue());
        Recording.receive(consumer, 2);
        session.rollback();
        Recording.receive(consumer, 1);
        session.commit();
        connection.close();
    }

    private static void poisonListener(Stage stage) throws Exception {
        Connection connection = Recording.open(stage, Recording.PREFETCH_4, Recording.AT_ONCE, AND_AGAIN,
                "jms.redeliveryPolicy.maximumRedeliveries=2");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Recording.send(session, stage.queue(), 1, 2);
        CountDownLatch all = new CountDownLatch(4);
        session.createConsumer(stage.queue()).setMessageListener(message -> {
            all.countDown();
            if (body(message).equals("m1")) {
                throw new IllegalStateException("m1 can't be handled");
            }
        });
        Stage.await(all);
        connection.stop();
        connection.close();
    }

    private static String body(Message message) {
        try {
            return Stage.body(message);
        } catch (JMSException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Another session has seen it before, so that it arrives with a count above the maximum. */
    private static void poisonOnArrival(Stage stage) throws JMSException {
        Connection connection = Recording.open(stage, Recording.POISON_AT_ONCE);
        Session first = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        Recording.send(first, stage.queue(), 1, 2);
        Recording.receive(first.createConsumer(stage.queue()), 1);
        first.close();
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        Recording.receive(session.createConsumer(stage.queue()), 1);
        session.commit();
        connection.close();
    }

    /** The message is dispatched in time, and too old when the application asks for it. */
    private static void expired(Stage stage, Acknowledgement.Mode mode) throws Exception {
        Connection connection = Recording.open(stage, Recording.PREFETCH_4);
        Session sending = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Session session = mode.open(connection);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        Message message = sending.createTextMessage("m1");
        sending.createProducer(stage.queue()).send(message, DeliveryMode.PERSISTENT, 4, LIFE_MS);
        Recording.send(sending, stage.queue(), 2, 2);
        Stage.ready(consumer, 2);
        Thread.sleep(LIFE_MS);
        Recording.receive(consumer, 1);
        if (mode == Acknowledgement.Mode.TRANSACTED) {
            session.commit();
        }
        consumer.close();
        connection.close();
    }

    private static void distributed(Stage stage) throws Exception {
        ActiveMQXAConnection connection = Recording.openXa(stage, Recording.PREFETCH_4, Recording.AT_ONCE, AND_AGAIN);
        ActiveMQXASession session = (ActiveMQXASession) connection.createXASession();
        XAResource resource = session.getXAResource();
        Xid sent = new XaTransactions.Branch("sent");
        resource.start(sent, XAResource.TMNOFLAGS);
        Recording.send(session, stage.queue(), 1, 7);
        resource.end(sent, XAResource.TMSUCCESS);
        resource.commit(sent, true);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        for (String end : new String[] {"one", "two", "back", "prepared-back", "again"}) {
            Xid xid = new XaTransactions.Branch(end);
            resource.start(xid, XAResource.TMNOFLAGS);
            Recording.receive(consumer, 2);
            resource.end(xid, XAResource.TMSUCCESS);
            if (end.equals("two") || end.equals("prepared-back")) {
                resource.prepare(xid);
            }
            if (end.endsWith("back")) {
                resource.rollback(xid);
            } else {
                resource.commit(xid, !end.equals("two"));
            }
        }
        connection.close();
    }

    /** Two of four were seen when it closes; another one gets them all. */
    private static void closed(Stage stage, boolean session) throws JMSException {
        Connection connection = Recording.open(stage, Recording.PREFETCH_4);
        Session first = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        Recording.send(first, stage.queue(), 1, 4);
        MessageConsumer consumer = first.createConsumer(stage.queue());
        Recording.receive(consumer, 2);
        if (session) {
            first.close();
        } else {
            consumer.close();
        }
        Session second = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Recording.receive(second.createConsumer(stage.queue()), 4);
        connection.close();
    }

    /** Nothing is there when the pull without end comes. */
    private static void pullThatWaits(Stage stage) throws Exception {
        Connection connection = Recording.open(stage, Recording.PULL);
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Session sending = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        Thread sender = new Thread(() -> {
            try {
                Thread.sleep(200);
                Recording.send(sending, stage.queue(), 1, 2);
            } catch (JMSException | InterruptedException error) {
                throw new IllegalStateException(error);
            }
        });
        sender.start();
        consumer.receive();
        sender.join();
        consumer.receiveNoWait();
        connection.close();
    }

    /** More messages than a browser's prefetch, two of them in delivery to somebody else. */
    private static void pages(Stage stage) throws JMSException {
        Connection connection = Recording.open(stage, "jms.prefetchPolicy.queueBrowserPrefetch=4",
                "jms.prefetchPolicy.queuePrefetch=2");
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        Recording.send(session, stage.queue(), 1, 7);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        Recording.receive(consumer, 1);
        Session browsing = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        stage.browse("browsed", browsing.createBrowser(stage.queue()));
        connection.close();
    }
}
