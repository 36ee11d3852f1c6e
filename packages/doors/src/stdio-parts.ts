import type { Author, Clock, Troupe } from './troupe.ts';

/** What serves a client at stdin and stdout. */
export interface StdioParts {
  /** In this process. */
  troupe: Troupe;
  clock: Clock;
  /** Who sits at the client. */
  author: Author;
  /** Version of Troupe. */
  version: string;
  /** Ends the connection. */
  signal: AbortSignal;
}

/** What passes such a client on. */
export interface StdioRelay extends Pick<StdioParts, 'clock' | 'version' | 'signal'> {
  /** Of the door of the server. */
  url: URL;
  /** A key, or the server's token. */
  credential: string | undefined;
}
