import type { Clock } from '../base/clock.ts';
import type { Author } from '../events/index.ts';
import type { Troupe } from '../library/troupe.ts';

export interface AcpParts {
  troupe: Troupe;
  clock: Pick<Clock, 'now'>;
  /** Who sits at the editor. */
  author: Author;
  version: string;
  /** Ends the connection. */
  signal: AbortSignal;
}
