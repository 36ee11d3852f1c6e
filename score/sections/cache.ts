import { bytes } from '../../test/support/check-prompt.ts';
import { HAS_DATA } from '../../test/support/real-logs.ts';
import { DATA_FILES, namedLogs, NO_DATA, SESSION } from '../data-files.ts';
import { atLeast, atMost, figure, type Figure, type Scored } from '../figure.ts';
import { LAYOUTS, type LayoutRow, scoreLayouts } from '../layouts.ts';
import { promptFor, Replay, withAssistant } from '../replay.ts';
import type { Options } from '../options.ts';
import { timedLog } from '../timed-log.ts';

/** How well the layout of the prompts uses the vendors' caches, and whether prompts really only grow at the end. */
export async function scoreCache({ quick }: Options): Promise<Scored> {
  if (!HAS_DATA) return { figures: [], violations: [], skipped: NO_DATA };
  const log = await timedLog(SESSION);
  const rows = scoreLayouts(log);
  const forEver = scoreLayouts(log, { ignoreTtl: true }).filter(({ vendor }) => vendor === 'anthropic');
  const prefix = await scorePrefix(quick);
  return {
    figures: [
      ...layoutFigures(rows, ''),
      ...layoutFigures(forEver, ', TTL ignored'),
      figure(`requests that begin with the previous one, byte for byte`, prefix.share, 'share', atLeast(1)),
      figure('  requests compared', prefix.requests, 'count'),
    ],
    violations: prefix.violations,
  };
}

function layoutFigures(rows: readonly LayoutRow[], note: string): Figure[] {
  const vendors = [...new Set(rows.map(({ vendor }) => vendor))];
  return vendors.flatMap((vendor) => {
    const of = (layout: (typeof LAYOUTS)[number]) =>
      rows.find((row) => row.vendor === vendor && row.layout === layout);
    const asked = vendor === 'anthropic' && note === '';
    const name = `${vendor}${note}`;
    const others = LAYOUTS.filter((layout) => layout !== 'append-only' && layout !== 'no live block');
    return [
      figure(
        `${name}: input read from the cache, append-only`,
        of('append-only')?.hitRate ?? NaN,
        'share',
        asked || vendor === 'anthropic' ? atLeast(0.98) : undefined,
      ),
      figure(
        `${name}: cost of live blocks relative to none`,
        1 / (of('no live block')?.relative ?? NaN),
        'ratio',
        atMost(1.05),
      ),
      ...others.map((layout) => figure(`${name}: ${layout}`, of(layout)?.relative ?? NaN, 'ratio')),
    ];
  });
}

interface Prefixes {
  share: number;
  requests: number;
  violations: string[];
}

/** Every log as turns, with its assistant split into two agents. Nothing is compacted, so every byte must stay. */
async function scorePrefix(quick: boolean): Promise<Prefixes> {
  const violations: string[] = [];
  let requests = 0;
  for (const file of DATA_FILES) {
    for (const [name, log] of await namedLogs(file, quick)) {
      const replay = new Replay((exchange) => (exchange % 3 === 0 ? 'bob' : 'ada'));
      const before = new Map<string, readonly string[]>();
      for (const call of replay.play(withAssistant(log))) {
        const now = bytes(promptFor(call).messages);
        const last = before.get(call.agent);
        if (last) {
          requests += 1;
          const broken = last.findIndex((text, index) => text !== now[index]);
          if (broken >= 0) violations.push(`${name} ${call.turn.id} step ${call.step}: message ${broken}`);
        }
        before.set(call.agent, now);
      }
    }
  }
  return { share: requests === 0 ? NaN : 1 - violations.length / requests, requests, violations };
}
