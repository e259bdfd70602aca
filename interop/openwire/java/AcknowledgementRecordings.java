package interop;

import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.function.BiConsumer;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
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
import org.apache.activemq.ActiveMQXAConnectionFactory;
import org.apache.activemq.ActiveMQXASession;

/** How the client acknowledges in each of its modes, one short conversation for each. */
final class AcknowledgementRecordings implements Program {
    private static final String[] LOOSE = Recording.LOOSE;
    private static final String AT_ONCE = "jms.redeliveryPolicy.initialRedeliveryDelay=0";
    private static final String AND_AGAIN = "jms.redeliveryPolicy.redeliveryDelay=0";
    private static final String PREFETCH_4 = "jms.prefetchPolicy.all=4";
    private static final String PREFETCH_10 = "jms.prefetchPolicy.all=10";
    private static final String OPTIMISED = "jms.optimizeAcknowledge=true";
    private static final String NEVER_TIMED_OUT = "jms.optimizeAcknowledgeTimeOut=600000";
    private static final int LIFE_MS = 150;

    @Override
    public void list(BiConsumer<String, Body> cases) {
        for (Acknowledgement.Mode mode : Acknowledgement.Mode.values()) {
            String name = mode.name().toLowerCase(Locale.ROOT).replace('_', '-') + Recording.END;
            cases.accept("topic-" + name, stage -> published(stage, mode, false));
            cases.accept("durable-" + name, stage -> published(stage, mode, true));
        }
        cases.accept("auto-listener" + Recording.END, AcknowledgementRecordings::listener);
        cases.accept("optimised-range" + Recording.END, AcknowledgementRecordings::range);
        cases.accept("optimised-time-out" + Recording.END, AcknowledgementRecordings::timeOut);
        cases.accept("optimised-timer" + Recording.END, AcknowledgementRecordings::timer);
        cases.accept("client-forms" + Recording.END, AcknowledgementRecordings::forms);
        cases.accept("client-prefetch-1" + Recording.END, stage -> client(stage, 1));
        cases.accept("client-pull" + Recording.END, stage -> client(stage, 0));
        cases.accept("transacted-individual" + Recording.END,
                stage -> individually(stage, "jms.transactedIndividualAck=true"));
        cases.accept("non-blocking-redelivery" + Recording.END,
                stage -> individually(stage, "jms.nonBlockingRedelivery=true"));
        cases.accept("redelivered" + Recording.END, AcknowledgementRecordings::redelivered);
        cases.accept("rollback-room" + Recording.END, AcknowledgementRecordings::room);
        cases.accept("recovered" + Recording.END, AcknowledgementRecordings::recovered);
        cases.accept("poison-range" + Recording.END, AcknowledgementRecordings::poisonRange);
        cases.accept("poison-listener" + Recording.END, AcknowledgementRecordings::poisonListener);
        cases.accept("poison-on-arrival" + Recording.END, AcknowledgementRecordings::poisonOnArrival);
        cases.accept("expired" + Recording.END, stage -> expired(stage, Acknowledgement.Mode.AUTO));
        cases.accept("expired-transacted" + Recording.END, stage -> expired(stage, Acknowledgement.Mode.TRANSACTED));
        cases.accept("xa-acknowledged" + Recording.END, AcknowledgementRecordings::distributed);
        cases.accept("closed-consumer" + Recording.END, stage -> closed(stage, false));
        cases.accept("closed-session" + Recording.END, stage -> closed(stage, true));
        cases.accept("pull-wait" + Recording.END, AcknowledgementRecordings::pullThatWaits);
        cases.accept("browse-pages" + Recording.END, AcknowledgementRecordings::pages);
    }

    private static Connection open(Stage stage, String... more) throws JMSException {
        String[] all = java.util.Arrays.copyOf(LOOSE, LOOSE.length + more.length);
        System.arraycopy(more, 0, all, LOOSE.length, more.length);
        return stage.connectAs("recorder", all);
    }

    private static void send(Session session, Destination destination, int first, int last) throws JMSException {
        for (int number = first; number <= last; number++) {
            session.createProducer(destination).send(session.createTextMessage("m" + number));
        }
    }

    private static void receive(MessageConsumer consumer, int count) throws JMSException {
        for (int index = 0; index < count; index++) {
            if (consumer.receive(Stage.LONG_MS) == null) {
                throw new IllegalStateException("message " + (index + 1) + " does not come");
            }
        }
    }

    /** A topic, with prefetch 4 and seven messages; the last one is not taken. */
    private static void published(Stage stage, Acknowledgement.Mode mode, boolean durable) throws JMSException {
        Connection connection = open(stage, PREFETCH_4);
        Session sending = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Session session = mode.open(connection);
        Topic topic = stage.topic();
        MessageConsumer consumer =
                durable ? session.createDurableSubscriber(topic, "s") : session.createConsumer(topic);
        send(sending, topic, 1, 7);
        for (int index = 1; index <= 6; index++) {
            Message message = consumer.receive(Stage.LONG_MS);
            mode.after(index, session, message);
        }
        consumer.close();
        connection.close();
    }

    private static void listener(Stage stage) throws Exception {
        Connection connection = open(stage, PREFETCH_4);
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        send(session, stage.queue(), 1, 6);
        CountDownLatch all = new CountDownLatch(6);
        session.createConsumer(stage.queue()).setMessageListener(message -> all.countDown());
        Stage.await(all);
        connection.stop();
        connection.close();
    }

    private static void range(Stage stage) throws JMSException {
        Connection connection = open(stage, PREFETCH_10, OPTIMISED, NEVER_TIMED_OUT);
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        send(session, stage.queue(), 1, 20);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        receive(consumer, 16);
        consumer.close();
        connection.close();
    }

    /** The second of three comes after more than the 300 ms that are the default. */
    private static void timeOut(Stage stage) throws Exception {
        Connection connection = open(stage, PREFETCH_10, OPTIMISED);
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        send(session, stage.queue(), 1, 4);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        receive(consumer, 1);
        Thread.sleep(500);
        receive(consumer, 2);
        consumer.close();
        connection.close();
    }

    private static void timer(Stage stage) throws Exception {
        Connection connection =
                open(stage, PREFETCH_10, OPTIMISED, NEVER_TIMED_OUT, "jms.optimizedAckScheduledAckInterval=400");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        send(session, stage.queue(), 1, 4);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        receive(consumer, 3);
        Thread.sleep(1_000);
        consumer.close();
        connection.close();
    }

    /** The message's, the consumer's and the session's way to acknowledge, with two consumers of one session. */
    private static void forms(Stage stage) throws JMSException {
        Connection connection = open(stage);
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        Queue first = stage.queue(".a");
        Queue second = stage.queue(".b");
        send(session, first, 1, 4);
        send(session, second, 1, 4);
        MessageConsumer one = session.createConsumer(first);
        MessageConsumer two = session.createConsumer(second);
        receive(one, 2);
        two.receive(Stage.LONG_MS).acknowledge();
        receive(one, 1);
        receive(two, 1);
        ((ActiveMQMessageConsumer) one).acknowledge();
        receive(one, 1);
        ((ActiveMQSession) session).acknowledge();
        receive(two, 1);
        connection.close();
    }

    private static void client(Stage stage, int prefetch) throws JMSException {
        Connection connection = open(stage, "jms.prefetchPolicy.all=" + prefetch);
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        send(session, stage.queue(), 1, 3);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        receive(consumer, 2);
        consumer.receive(Stage.LONG_MS).acknowledge();
        consumer.close();
        connection.close();
    }

    private static void individually(Stage stage, String option) throws JMSException {
        Connection connection = open(stage, PREFETCH_4, AT_ONCE, AND_AGAIN, option);
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        send(session, stage.queue(), 1, 7);
        session.commit();
        MessageConsumer consumer = session.createConsumer(stage.queue());
        receive(consumer, 4);
        session.commit();
        receive(consumer, 2);
        session.rollback();
        receive(consumer, 2);
        session.commit();
        consumer.close();
        connection.close();
    }

    private static void redelivered(Stage stage) throws JMSException {
        Connection connection = open(stage, PREFETCH_4, AT_ONCE, AND_AGAIN);
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        send(session, stage.queue(), 1, 2);
        session.commit();
        MessageConsumer consumer = session.createConsumer(stage.queue());
        for (int time = 1; time <= 3; time++) {
            receive(consumer, 2);
            session.rollback();
        }
        receive(consumer, 2);
        session.commit();
        connection.close();
    }

    /** More messages than the broker may send, so that it is seen what a rollback makes room for. */
    private static void room(Stage stage) throws Exception {
        Connection connection = open(stage, PREFETCH_4, AT_ONCE, AND_AGAIN);
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        send(session, stage.queue(), 1, 12);
        session.commit();
        MessageConsumer consumer = session.createConsumer(stage.queue());
        receive(consumer, 2);
        Stage.ready(consumer, 4);
        session.rollback();
        receive(consumer, 2);
        session.commit();
        Stage.barrier(connection);
        Stage.ready(consumer, 4);
        consumer.close();
        connection.close();
    }

    private static void recovered(Stage stage) throws JMSException {
        Connection connection = open(stage, PREFETCH_4, AT_ONCE, AND_AGAIN);
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        send(session, stage.queue(), 1, 2);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        for (int time = 1; time <= 2; time++) {
            receive(consumer, 2);
            session.recover();
        }
        receive(consumer, 1);
        consumer.receive(Stage.LONG_MS).acknowledge();
        connection.close();
    }

    private static void poisonRange(Stage stage) throws JMSException {
        Connection connection = open(stage, PREFETCH_4, "jms.redeliveryPolicy.maximumRedeliveries=0");
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        send(session, stage.queue(), 1, 3);
        session.commit();
        MessageConsumer consumer = session.createConsumer(stage.queue());
        receive(consumer, 2);
        session.rollback();
        receive(consumer, 1);
        session.commit();
        connection.close();
    }

    private static void poisonListener(Stage stage) throws Exception {
        Connection connection =
                open(stage, PREFETCH_4, AT_ONCE, AND_AGAIN, "jms.redeliveryPolicy.maximumRedeliveries=2");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        send(session, stage.queue(), 1, 2);
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
        Connection connection = open(stage, "jms.redeliveryPolicy.maximumRedeliveries=0");
        Session first = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        send(first, stage.queue(), 1, 2);
        receive(first.createConsumer(stage.queue()), 1);
        first.close();
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        receive(session.createConsumer(stage.queue()), 1);
        session.commit();
        connection.close();
    }

    /** The message is dispatched in time, and too old when the application asks for it. */
    private static void expired(Stage stage, Acknowledgement.Mode mode) throws Exception {
        Connection connection = open(stage, PREFETCH_4);
        Session sending = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Session session = mode.open(connection);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        Message message = sending.createTextMessage("m1");
        sending.createProducer(stage.queue()).send(message, DeliveryMode.PERSISTENT, 4, LIFE_MS);
        send(sending, stage.queue(), 2, 2);
        Stage.ready(consumer, 2);
        Thread.sleep(LIFE_MS);
        receive(consumer, 1);
        if (mode == Acknowledgement.Mode.TRANSACTED) {
            session.commit();
        }
        consumer.close();
        connection.close();
    }

    private static void distributed(Stage stage) throws Exception {
        ActiveMQXAConnectionFactory factory = new ActiveMQXAConnectionFactory(
                Stage.USER, Stage.PASSWORD, stage.url(LOOSE[0], LOOSE[1], PREFETCH_4, AT_ONCE, AND_AGAIN));
        ActiveMQXAConnection connection = (ActiveMQXAConnection) factory.createXAConnection();
        connection.setClientID("recorder");
        connection.start();
        ActiveMQXASession session = (ActiveMQXASession) connection.createXASession();
        XAResource resource = session.getXAResource();
        Xid sent = new XaTransactions.Branch("sent");
        resource.start(sent, XAResource.TMNOFLAGS);
        send(session, stage.queue(), 1, 7);
        resource.end(sent, XAResource.TMSUCCESS);
        resource.commit(sent, true);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        for (String end : new String[] {"one", "two", "back", "prepared-back", "again"}) {
            Xid xid = new XaTransactions.Branch(end);
            resource.start(xid, XAResource.TMNOFLAGS);
            receive(consumer, 2);
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
        Connection connection = open(stage, PREFETCH_4);
        Session first = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        send(first, stage.queue(), 1, 4);
        MessageConsumer consumer = first.createConsumer(stage.queue());
        receive(consumer, 2);
        if (session) {
            first.close();
        } else {
            consumer.close();
        }
        Session second = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        receive(second.createConsumer(stage.queue()), 4);
        connection.close();
    }

    /** Nothing is there when the pull without end comes. */
    private static void pullThatWaits(Stage stage) throws Exception {
        Connection connection = open(stage, "jms.prefetchPolicy.all=0");
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Session sending = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        Thread sender = new Thread(() -> {
            try {
                Thread.sleep(200);
                send(sending, stage.queue(), 1, 2);
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
        Connection connection = open(stage, "jms.prefetchPolicy.queueBrowserPrefetch=4",
                "jms.prefetchPolicy.queuePrefetch=2");
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        send(session, stage.queue(), 1, 7);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        receive(consumer, 1);
        Session browsing = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        stage.browse("browsed", browsing.createBrowser(stage.queue()));
        connection.close();
    }
}
