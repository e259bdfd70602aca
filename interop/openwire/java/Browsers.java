package interop;

import java.util.Enumeration;
import java.util.function.BiConsumer;
import javax.jms.Connection;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.QueueBrowser;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.command.ActiveMQTopic;

/** Browsers: order, end, and what consumers do beside them. */
final class Browsers implements Program {
    @Override
    public void list(BiConsumer<String, Body> cases) {
        cases.accept("empty queue", stage -> stage.browse("browsed", stage.queue()));
        cases.accept("order and end", stage -> {
            stage.send(stage.queue(), 20);
            stage.browse("browsed", stage.queue());
            stage.browse("browsed again", stage.queue());
            stage.drain("left", stage.queue());
        });
        for (int prefetch : new int[] {0, 1, 5, 500}) {
            cases.accept("prefetch " + prefetch, stage -> prefetched(stage, prefetch));
        }
        cases.accept("more than a page", stage -> count(stage, 450));
        cases.accept("selector", stage -> {
            stage.send(stage.queue(), 3);
            stage.browse("none", stage.queue(), "a = 1");
            stage.browse("all", stage.queue(), "a IS NULL");
        });
        cases.accept("sees what is in delivery", Browsers::inDelivery);
        cases.accept("half browsed while others consume", Browsers::whileConsuming);
        cases.accept("two passes of one browser", Browsers::twice);
        cases.accept("does not lock or count", Browsers::untouched);
        cases.accept("uncommitted messages stay unseen", Browsers::uncommitted);
        cases.accept("wildcard and composite", Browsers::several);
        cases.accept("dead consumer's messages", Browsers::returned);
        cases.accept("after the connection is closed", stage -> {
            Connection connection = stage.connect();
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            QueueBrowser browser = session.createBrowser(stage.queue());
            connection.close();
            stage.attempt("enumeration", browser::getEnumeration);
        });
        cases.accept("transacted session browses", stage -> {
            stage.send(stage.queue(), 3);
            Connection connection = stage.connect();
            Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
            stage.browse("browsed", session.createBrowser(stage.queue()));
            session.commit();
            connection.close();
            stage.drain("left", stage.queue());
        });
        cases.accept("browser as a consumer of a topic", stage -> {
            ActiveMQConnection connection = stage.connect();
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            stage.attempt("consumer.browser of a topic", () ->
                    session.createConsumer(new ActiveMQTopic(stage.own("") + "?consumer.browser=true")));
        });
    }

    private static void prefetched(Stage stage, int prefetch) throws Exception {
        stage.send(stage.queue(), 12);
        Connection connection = stage.connect("jms.prefetchPolicy.queueBrowserPrefetch=" + prefetch);
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        if (prefetch > 0) {
            stage.browse("browsed", session.createBrowser(stage.queue()));
        } else {
            stage.attempt("browsed", () -> stage.browse("browsed", session.createBrowser(stage.queue())));
        }
        connection.close();
        stage.drain("left", stage.queue());
    }

    private static void count(Stage stage, int sent) throws Exception {
        stage.send(stage.queue(), sent);
        Connection connection = stage.connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        int seen = 0;
        for (Enumeration<?> found = session.createBrowser(stage.queue()).getEnumeration(); found.hasMoreElements(); ) {
            Message message = (Message) found.nextElement();
            seen++;
            if (!Stage.body(message).equals("m" + seen)) {
                stage.say("out of order: %s at %d", Stage.body(message), seen);
            }
        }
        stage.say("seen %d", seen);
    }

    private static void inDelivery(Stage stage) throws Exception {
        stage.send(stage.queue(), 6);
        ActiveMQConnection connection = stage.connect();
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(stage.queue());
        Message first = consumer.receive(Stage.LONG_MS);
        stage.browse("with one received", stage.queue());
        first.acknowledge();
        Stage.barrier(connection);
        stage.browse("with one acknowledged", stage.queue());
    }

    private static void whileConsuming(Stage stage) throws Exception {
        stage.send(stage.queue(), 6);
        Connection connection = stage.connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Enumeration<?> found = session.createBrowser(stage.queue()).getEnumeration();
        stage.say("browsed %s", found.hasMoreElements() ? Stage.show((Message) found.nextElement()) : "nothing");
        stage.drain("consumed", stage.queue());
        // What was handed to the browser before stays visible to it.
        int more = 0;
        while (found.hasMoreElements()) {
            found.nextElement();
            more++;
        }
        stage.say("browsed %d more", more);
    }

    private static void twice(Stage stage) throws Exception {
        stage.send(stage.queue(), 3);
        Connection connection = stage.connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        QueueBrowser browser = session.createBrowser(stage.queue());
        for (int pass = 1; pass <= 2; pass++) {
            StringBuilder seen = new StringBuilder();
            for (Enumeration<?> found = browser.getEnumeration(); found.hasMoreElements(); ) {
                seen.append(' ').append(Stage.show((Message) found.nextElement()));
            }
            stage.say("pass %d:%s", pass, seen);
            stage.send(stage.queue(), 4, 5);
        }
    }

    private static void untouched(Stage stage) throws Exception {
        stage.send(stage.queue(), 3);
        Connection connection = stage.connect();
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        QueueBrowser browser = session.createBrowser(stage.queue());
        Enumeration<?> found = browser.getEnumeration();
        while (found.hasMoreElements()) {
            ((Message) found.nextElement()).acknowledge();
        }
        stage.drain("all there while the browser is open", stage.queue());
    }

    private static void uncommitted(Stage stage) throws Exception {
        Connection connection = stage.connect();
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        session.createProducer(stage.queue()).send(session.createTextMessage("m1"));
        Stage.barrier(connection);
        stage.browse("before commit", stage.queue());
        session.commit();
        stage.browse("after commit", stage.queue());
        session.createConsumer(stage.queue()).receive(Stage.LONG_MS);
        stage.browse("received, not committed", stage.queue());
        session.commit();
        stage.browse("received and committed", stage.queue());
    }

    private static void several(Stage stage) throws Exception {
        stage.send(stage.queue(".a"), "a1", "a2");
        stage.send(stage.queue(".b"), "b1");
        Connection connection = stage.connect();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        for (String name : new String[] {stage.own(".*"), stage.own(".a") + "," + stage.own(".b")}) {
            int seen = 0;
            QueueBrowser browser = session.createBrowser(new ActiveMQQueue(name));
            for (Enumeration<?> found = browser.getEnumeration(); found.hasMoreElements(); ) {
                found.nextElement();
                seen++;
            }
            browser.close();
            stage.say("%s: seen %d", name, seen);
        }
    }

    private static void returned(Stage stage) throws Exception {
        stage.send(stage.queue(), 4);
        ActiveMQConnection connection = stage.connect();
        Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
        stage.receive("received", session.createConsumer(stage.queue()), 2);
        connection.close();
        stage.browse("browsed", stage.queue());
        stage.drain("left", stage.queue());
    }
}
