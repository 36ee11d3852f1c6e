import { countTokens } from '../../src/context/budget/tokens.ts';
import type { Event } from '../../src/events/index.ts';
import { HAS_DATA } from '../../test/support/real-logs.ts';
import { countCarried, noCarried, type Share } from '../carried.ts';
import { DATA_FILES, namedLogs, NO_DATA } from '../data-files.ts';
import { atLeast, atMost, figure, type Scored } from '../figure.ts';
import type { Options } from '../options.ts';
import { Compactor, windowFor } from '../compactor.ts';
import { Replay, withAssistant } from '../replay.ts';

const MIN_LOG_TOKENS = 3_000;
const LEAST_WINDOW = 2_000;
const WINDOW_SHARES = [1 / 8, 1 / 4];

/** Every real log in windows so small that it is compacted again and again: the losses of each compaction. */
export async function scoreCarry({ quick, note }: Options): Promise<Scored> {
  if (!HAS_DATA) return { figures: [], violations: [], skipped: NO_DATA };
  const carried = noCarried();
  for (const file of DATA_FILES) {
    note(file);
    for (const [, log] of await namedLogs(file, quick)) {
      const tokens = log.reduce((sum, event) => sum + event.tokens, 0);
      if (tokens < MIN_LOG_TOKENS) continue;
      for (const share of WINDOW_SHARES) {
        countCarried(compacted(log, Math.max(LEAST_WINDOW, tokens * share)), carried, countTokens);
      }
    }
  }
  const of = ({ kept, of: all }: Share) => (all === 0 ? NaN : kept / all);
  const { pairs, facts, pending, vanished, quotesThatFit, quotes, shownConstraints } = carried;
  for (const one of vanished.slice(0, 5)) note(`vanished: ${one}`);
  return {
    figures: [
      figure(
        'demands, artifacts and files of a compaction that are in the next one',
        of(facts),
        'share',
        atLeast(1),
      ),
      figure('  facts', facts.of, 'count'),
      figure('  pairs of compactions', pairs, 'count'),
      figure('  open items that are still open', of(pending), 'share'),
      figure('  open items lost without a later mention', vanished.length, 'count', atMost(0)),
      figure("people's words, if all of them fit", of(quotesThatFit), 'share', atLeast(1)),
      figure('  quotes', quotesThatFit.of, 'count'),
      figure("  people's words, also if they do not fit, shortened or in a list", of(quotes), 'share'),
      figure('  quotes', quotes.of, 'count'),
      figure('  constraints readable before and after', of(shownConstraints), 'share'),
      figure('largest share of the lists in a compaction', carried.lists, 'share', atMost(0.2)),
      figure('first request still there', of(carried.requests), 'share', atLeast(1)),
      figure('  compactions', carried.requests.of, 'count'),
    ],
    violations: [],
  };
}

function compacted(log: readonly Event[], window: number): readonly Event[] {
  const replay = new Replay(() => 'assistant');
  const compactor = new Compactor(windowFor({ window, fixed: 50 }));
  for (const call of replay.play(withAssistant(log))) compactor.beforeCall(replay, call);
  return replay.log;
}
