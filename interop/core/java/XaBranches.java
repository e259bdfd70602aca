package interop;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import javax.jms.JMSException;
import javax.jms.Session;
import javax.jms.XAConnection;
import javax.jms.XASession;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import org.apache.activemq.artemis.jms.client.ActiveMQXAConnectionFactory;

/** Transactions with a coordinator of their own. */
final class XaBranches implements Program {
    private static final AtomicInteger CONNECTIONS = new AtomicInteger();

    @Override
    public void list(BiConsumer<String, Body> cases) {
        for (String end : new String[] {"one phase", "two phases", "rollback", "prepared rollback"}) {
            cases.accept(end, stage -> ends(stage, end));
        }
        cases.accept("prepared outlives its connection", stage -> outlives(stage, "close"));
        cases.accept("prepared outlives a lost connection", stage -> outlives(stage, "cut"));
        cases.accept("prepared outlives a killed broker", stage -> outlives(stage, "restart"));
        cases.accept("not prepared dies with its connection", XaBranches::unprepared);
        cases.accept("read only", XaBranches::readOnly);
        cases.accept("suspend, resume and join", XaBranches::suspends);
        cases.accept("another session joins", XaBranches::joins);
        cases.accept("end with failure", XaBranches::fails);
        cases.accept("branches of one session in turn", XaBranches::inTurn);
        cases.accept("start in a branch", XaBranches::startsTwice);
        cases.accept("errors", XaBranches::errors);
        cases.accept("same id again", XaBranches::sameId);
        cases.accept("forget", XaBranches::forgets);
        cases.accept("timeouts", XaBranches::timeouts);
        cases.accept("same resource manager", XaBranches::sameManager);
        cases.accept("work outside a branch", XaBranches::outside);
    }

    private static final class Branch implements Xid {
        private final byte[] global;

        Branch(String name) {
            global = name.getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public int getFormatId() {
            return 77;
        }

        @Override
        public byte[] getGlobalTransactionId() {
            return global;
        }

        @Override
        public byte[] getBranchQualifier() {
            return new byte[] {1};
        }
    }

    private static XAConnection connect(Stage stage, String url) throws JMSException {
        XAConnection connection = new ActiveMQXAConnectionFactory(url, Scene.USER, Scene.PASSWORD).createXAConnection();
        stage.closed(connection).setClientID(stage.own("." + CONNECTIONS.incrementAndGet()));
        connection.start();
        return connection;
    }

    private static XASession session(Stage stage) throws JMSException {
        return connect(stage, stage.url()).createXASession();
    }

    private static void send(Stage stage, XASession session, String text) throws JMSException {
        session.createProducer(stage.queue(".out")).send(session.createTextMessage(text));
    }

    /** Sends one message and receives one in a branch, which is ended. */
    private static Xid work(Stage stage, XASession session) throws Exception {
        stage.send(stage.queue(".in"), 3);
        Xid xid = new Branch(stage.own(""));
        session.getXAResource().start(xid, XAResource.TMNOFLAGS);
        send(stage, session, "sent");
        stage.receive("received", session.createConsumer(stage.queue(".in")), 1);
        session.getXAResource().end(xid, XAResource.TMSUCCESS);
        return xid;
    }

    private static void left(Stage stage) throws JMSException {
        stage.drain("in", stage.queue(".in"));
        stage.drain("out", stage.queue(".out"));
    }

    private static int found(XAResource resource, Xid xid) throws Exception {
        int count = 0;
        for (Xid one : resource.recover(XAResource.TMSTARTRSCAN)) {
            boolean same = one.getFormatId() == xid.getFormatId()
                    && Arrays.equals(one.getGlobalTransactionId(), xid.getGlobalTransactionId())
                    && Arrays.equals(one.getBranchQualifier(), xid.getBranchQualifier());
            count += same ? 1 : 0;
        }
        return count;
    }

    private static void ends(Stage stage, String end) throws Exception {
        XASession session = session(stage);
        XAResource resource = session.getXAResource();
        Xid xid = work(stage, session);
        stage.drain("out before", stage.queue(".out"));
        if (end.startsWith("prepared") || end.startsWith("two")) {
            stage.say("prepare gives %d", resource.prepare(xid));
            stage.say("recovered: %d", found(resource, xid));
            stage.drain("out prepared", stage.queue(".out"));
        }
        if (end.endsWith("rollback")) {
            resource.rollback(xid);
        } else {
            resource.commit(xid, end.startsWith("one"));
        }
        stage.say("recovered then: %d", found(resource, xid));
        session.close();
        left(stage);
    }

    private static void outlives(Stage stage, String what) throws Exception {
        stage.allow(120_000);
        Cut cut = new Cut(stage.host(), stage.port());
        XAConnection connection = connect(stage, Stage.url(cut.port()));
        XASession session = connection.createXASession();
        Xid xid = work(stage, session);
        stage.say("prepare gives %d", session.getXAResource().prepare(xid));
        if (what.equals("restart")) {
            Scene.harness("restart");
        } else if (what.equals("cut")) {
            String client = connection.getClientID();
            cut.cut();
            stage.gone(client);
        } else {
            connection.close();
        }
        cut.close();
        XAResource next = session(stage).getXAResource();
        stage.say("recovered: %d", found(next, xid));
        stage.drain("in before", stage.queue(".in"));
        stage.drain("out before", stage.queue(".out"));
        next.commit(xid, false);
        stage.say("recovered then: %d", found(next, xid));
        left(stage);
    }

    private static void unprepared(Stage stage) throws Exception {
        XAConnection connection = connect(stage, stage.url());
        Xid xid = work(stage, connection.createXASession());
        connection.close();
        XAResource next = session(stage).getXAResource();
        stage.say("recovered: %d", found(next, xid));
        stage.attempt("commit", () -> next.commit(xid, true));
        left(stage);
    }

    private static void readOnly(Stage stage) throws Exception {
        XAResource resource = session(stage).getXAResource();
        Xid xid = new Branch(stage.own(""));
        resource.start(xid, XAResource.TMNOFLAGS);
        resource.end(xid, XAResource.TMSUCCESS);
        stage.say("prepare gives %d", resource.prepare(xid));
        stage.attempt("commit", () -> resource.commit(xid, false));
    }

    private static void suspends(Stage stage) throws Exception {
        XASession session = session(stage);
        XAResource resource = session.getXAResource();
        Xid xid = new Branch(stage.own(""));
        resource.start(xid, XAResource.TMNOFLAGS);
        send(stage, session, "m1");
        stage.attempt("suspend", () -> resource.end(xid, XAResource.TMSUSPEND));
        stage.attempt("suspend again", () -> resource.end(xid, XAResource.TMSUSPEND));
        stage.attempt("resume", () -> resource.start(xid, XAResource.TMRESUME));
        send(stage, session, "m2");
        stage.attempt("end", () -> resource.end(xid, XAResource.TMSUCCESS));
        stage.attempt("join", () -> resource.start(xid, XAResource.TMJOIN));
        send(stage, session, "m3");
        stage.attempt("end", () -> resource.end(xid, XAResource.TMSUCCESS));
        resource.commit(xid, true);
        stage.drain("out", stage.queue(".out"));
    }

    private static void joins(Stage stage) throws Exception {
        XASession first = session(stage);
        XASession second = session(stage);
        Xid xid = new Branch(stage.own(""));
        first.getXAResource().start(xid, XAResource.TMNOFLAGS);
        send(stage, first, "first");
        second.getXAResource().start(xid, XAResource.TMJOIN);
        send(stage, second, "second");
        stage.attempt("the second ends", () -> second.getXAResource().end(xid, XAResource.TMSUCCESS));
        stage.attempt("the first ends", () -> first.getXAResource().end(xid, XAResource.TMSUCCESS));
        stage.attempt("the second prepares", () -> second.getXAResource().prepare(xid));
        stage.attempt("the first commits", () -> first.getXAResource().commit(xid, false));
        stage.drain("out", stage.queue(".out"));
    }

    private static void fails(Stage stage) throws Exception {
        XASession session = session(stage);
        XAResource resource = session.getXAResource();
        Xid xid = new Branch(stage.own(""));
        resource.start(xid, XAResource.TMNOFLAGS);
        send(stage, session, "m1");
        stage.attempt("end", () -> resource.end(xid, XAResource.TMFAIL));
        stage.attempt("prepare", () -> resource.prepare(xid));
        stage.attempt("rollback", () -> resource.rollback(xid));
        stage.drain("out", stage.queue(".out"));
    }

    private static void inTurn(Stage stage) throws Exception {
        XASession session = session(stage);
        XAResource resource = session.getXAResource();
        Xid one = new Branch(stage.own(".1"));
        Xid two = new Branch(stage.own(".2"));
        for (Xid xid : new Xid[] {one, two}) {
            resource.start(xid, XAResource.TMNOFLAGS);
            send(stage, session, xid == one ? "one" : "two");
            resource.end(xid, XAResource.TMSUCCESS);
        }
        stage.say("prepare gives %d and %d", resource.prepare(one), resource.prepare(two));
        stage.say("recovered %d and %d", found(resource, one), found(resource, two));
        resource.commit(two, false);
        resource.rollback(one);
        stage.drain("out", stage.queue(".out"));
    }

    private static void startsTwice(Stage stage) throws Exception {
        XASession session = session(stage);
        XAResource resource = session.getXAResource();
        Xid one = new Branch(stage.own(".1"));
        Xid two = new Branch(stage.own(".2"));
        resource.start(one, XAResource.TMNOFLAGS);
        send(stage, session, "one");
        stage.attempt("start of another", () -> resource.start(two, XAResource.TMNOFLAGS));
        send(stage, session, "two");
        stage.attempt("end of the first", () -> resource.end(one, XAResource.TMSUCCESS));
        stage.attempt("end of the other", () -> resource.end(two, XAResource.TMSUCCESS));
        stage.attempt("commit of the other", () -> resource.commit(two, true));
        stage.attempt("commit of the first", () -> resource.commit(one, true));
        stage.drain("out", stage.queue(".out"));
    }

    private static void errors(Stage stage) throws Exception {
        XASession session = session(stage);
        XAResource resource = session.getXAResource();
        Xid unknown = new Branch(stage.own(".unknown"));
        stage.attempt("prepare of an unknown branch", () -> resource.prepare(unknown));
        stage.attempt("commit of an unknown branch", () -> resource.commit(unknown, false));
        stage.attempt("one phase of an unknown branch", () -> resource.commit(unknown, true));
        stage.attempt("rollback of an unknown branch", () -> resource.rollback(unknown));
        stage.attempt("forget of an unknown branch", () -> resource.forget(unknown));
        stage.attempt("end of an unknown branch", () -> resource.end(unknown, XAResource.TMSUCCESS));
        stage.attempt("join of an unknown branch", () -> resource.start(unknown, XAResource.TMJOIN));
        stage.attempt("resume of an unknown branch", () -> resource.start(unknown, XAResource.TMRESUME));
        Xid xid = new Branch(stage.own(""));
        resource.start(xid, XAResource.TMNOFLAGS);
        send(stage, session, "m1");
        stage.attempt("resume of one that runs", () -> resource.start(xid, XAResource.TMRESUME));
        stage.attempt("end", () -> resource.end(xid, XAResource.TMSUCCESS));
        stage.attempt("end again", () -> resource.end(xid, XAResource.TMSUCCESS));
        stage.attempt("prepare", () -> resource.prepare(xid));
        stage.attempt("prepare again", () -> resource.prepare(xid));
        stage.attempt("one phase though prepared", () -> resource.commit(xid, true));
        stage.attempt("commit", () -> resource.commit(xid, false));
        stage.attempt("commit again", () -> resource.commit(xid, false));
        stage.drain("out", stage.queue(".out"));
    }

    private static void sameId(Stage stage) throws Exception {
        XASession first = session(stage);
        Xid xid = new Branch(stage.own(""));
        first.getXAResource().start(xid, XAResource.TMNOFLAGS);
        stage.attempt("another session starts it", () -> session(stage).getXAResource().start(xid, XAResource.TMNOFLAGS));
        first.getXAResource().end(xid, XAResource.TMSUCCESS);
        stage.attempt("and when it has ended", () -> session(stage).getXAResource().start(xid, XAResource.TMNOFLAGS));
        first.getXAResource().rollback(xid);
        stage.attempt("and when it is over", () -> session(stage).getXAResource().start(xid, XAResource.TMNOFLAGS));
    }

    private static void forgets(Stage stage) throws Exception {
        XASession session = session(stage);
        XAResource resource = session.getXAResource();
        Xid xid = work(stage, session);
        resource.prepare(xid);
        stage.attempt("forget", () -> resource.forget(xid));
        stage.say("recovered: %d", found(resource, xid));
        stage.attempt("rollback", () -> resource.rollback(xid));
        session.close();
        left(stage);
    }

    private static void timeouts(Stage stage) throws Exception {
        XAResource resource = session(stage).getXAResource();
        stage.say("at first %d", resource.getTransactionTimeout());
        stage.say("set: %s", resource.setTransactionTimeout(77));
    }

    private static void sameManager(Stage stage) throws Exception {
        XAResource one = session(stage).getXAResource();
        stage.say("same resource manager: %s", one.isSameRM(session(stage).getXAResource()));
    }

    private static void outside(Stage stage) throws Exception {
        XASession session = session(stage);
        stage.attempt("send outside a branch", () -> send(stage, session, "m1"));
        stage.attempt("commit of the session", session::commit);
        stage.send(stage.queue(".in"), 2);
        stage.receive("received outside", session.createConsumer(stage.queue(".in")), 1);
        session.createQueue(stage.own(""));
        session.close();
        left(stage);
        Session plain = connect(stage, stage.url()).createSession(false, Session.AUTO_ACKNOWLEDGE);
        plain.createProducer(stage.queue(".out")).send(plain.createTextMessage("m2"));
        stage.drain("out", stage.queue(".out"));
    }
}
