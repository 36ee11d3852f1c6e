import { createOutage, type Warn } from './outage.ts';

/** Asks a server within some time; null if it is unavailable. After an answer that comes too late, `late` is called. */
export type AskServer = <T>(question: () => Promise<T>, late?: () => void) => Promise<T | null>;

export interface AskServerOptions {
  /** As it is called in warnings. */
  server: string;
  /** Told when the server goes away, and when it is back. */
  onWarning: Warn;
  /** Called with the error of each question without an answer. */
  onFailed?: ((error: unknown) => void) | undefined;
  /** The server counts as unavailable after this long without an answer. Default 1,000. */
  answerMs?: number | undefined;
  /** Why nothing can be asked now; null: it can. Default: it can. */
  whyNot?: () => string | null;
}

/** For admission, which never waits longer than `answerMs` and never keeps a turn back for want of an answer. */
export function createAskServer({
  server,
  onWarning,
  onFailed = () => {},
  answerMs = 1_000,
  whyNot = () => null,
}: AskServerOptions): AskServer {
  const outage = createOutage(onWarning, {
    where: 'admission',
    away: `${server} is unavailable: turns and model calls are admitted without regard to caps until it is back`,
    back: `${server} is back: caps hold again`,
  });
  return async (question, late = () => {}) => {
    const limit = Promise.withResolvers<'late'>();
    const timer = setTimeout(() => limit.resolve('late'), answerMs);
    try {
      const why = whyNot();
      if (why !== null) throw new Error(why);
      const asked = question();
      const answer = await Promise.race([asked.then((found) => ({ found })), limit.promise]);
      if (answer === 'late') {
        asked.then(late, () => {});
        throw new Error(`no answer for ${answerMs} ms`);
      }
      outage.end(server);
      return answer.found;
    } catch (error) {
      onFailed(error);
      outage.begin(server, error);
      return null;
    } finally {
      clearTimeout(timer);
    }
  };
}
