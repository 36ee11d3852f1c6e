import { beginTurn, createView, foldEvent, forkView, type View } from '../../src/context/index.ts';
import type { AgentId, Event, EventId, TurnId } from '../../src/events/index.ts';
import { bytes, invalidities, misplaced, visibleSeqs } from '../../test/support/check-prompt.ts';
import { logged, SECRET, viewOf } from '../../test/support/log-player.ts';
import { dealt, HAS_DATA } from '../../test/support/real-logs.ts';
import { DATA_FILES, namedLogs, NO_DATA } from '../data-files.ts';
import { atLeast, figure, type Scored } from '../figure.ts';
import type { Options } from '../options.ts';
import { promptFor } from '../replay.ts';
import { checkCompacted, type CompactedCount } from '../compacted-log.ts';

const AGENTS = ['ada', 'bob', 'cyd'];
/** Hears everything and never speaks. */
const OBSERVER = 'observer';
/** Number of views built from scratch for comparison with the one that grew with the log. */
const COLD_BUILDS = 12;

interface Tally {
  prompts: number;
  coldBuilds: number;
  problems: string[];
}

/**
 * Every log of `../shared/data`, with the assistant split into three agents. First as imported: each agent and an
 * observer is asked at every index. Then as turns in a window so small that views are compacted all the time: every
 * request of every turn.
 */
export async function scoreInvariants({ quick, note }: Options): Promise<Scored> {
  if (!HAS_DATA) return { figures: [], violations: [], skipped: NO_DATA };
  const whole: Tally = { prompts: 0, coldBuilds: 0, problems: [] };
  const compacted: CompactedCount = {
    requests: 0,
    prunes: 0,
    compactions: 0,
    coldBuilds: 0,
    faulty: 0,
    problems: [],
  };
  let logs = 0;
  for (const file of DATA_FILES) {
    note(file);
    for (const [name, log] of await namedLogs(file, quick)) {
      logs += 1;
      const split = dealt(log, AGENTS, (n) => n * 7 + (n % 5));
      for (const agent of [...AGENTS, OBSERVER]) checkEveryIndex(name, split, agent, whole);
      checkCompacted(name, log, AGENTS, compacted);
    }
  }
  const sound = (faulty: number, all: number) => (all === 0 ? NaN : 1 - faulty / all);
  const faulty = new Set(whole.problems.map((problem) => problem.split(': ')[0])).size;
  return {
    figures: [
      figure('prompts with every event once, and valid', sound(faulty, whole.prompts), 'share', atLeast(1)),
      figure('  logs', logs, 'count'),
      figure('  prompts checked: 3 agents and an observer at every index', whole.prompts, 'count'),
      figure('  of them also built from scratch, with the same bytes', whole.coldBuilds, 'count'),
      figure(
        'valid compacted prompts with every event once or covered',
        sound(compacted.faulty, compacted.requests),
        'share',
        atLeast(1),
      ),
      figure('  requests checked, in small windows', compacted.requests, 'count'),
      figure('  of them also built from scratch, with the same bytes', compacted.coldBuilds, 'count'),
      figure('  prunes', compacted.prunes, 'count'),
      figure('  compactions adopted', compacted.compactions, 'count'),
    ],
    violations: [...whole.problems, ...compacted.problems],
  };
}

function checkEveryIndex(name: string, log: readonly Event[], agent: string, tally: Tally): void {
  const view = createView(agent as AgentId, SECRET);
  const visible = new Set(visibleSeqs(log, agent));
  const every = Math.max(1, Math.floor(log.length / COLD_BUILDS));
  const expected: number[] = [];
  for (const [index, event] of log.entries()) {
    foldEvent(view, event);
    // Later events do not change which events of a log are visible.
    if (visible.has(event.seq)) expected.push(event.seq);
    const asked = asking(forkView(view), index + 2);
    const { messages } = promptFor(asked);
    tally.prompts += 1;
    const problems = [...invalidities(messages), ...misplaced(messages, [...expected, index + 2])];
    if (index % every === 0) {
      tally.coldBuilds += 1;
      const cold = promptFor(asking(viewOf(agent, log.slice(0, index + 1)), index + 2));
      if (bytes(cold.messages).join('\n') !== bytes(messages).join('\n'))
        problems.push('other bytes when cold');
    }
    tally.problems.push(...problems.map((problem) => `${name} @${agent} at ${index}: ${problem}`));
  }
}

function asking(view: View, seq: number) {
  const { agent } = view;
  const trigger = logged(
    {
      id: 'trigger' as EventId,
      author: { kind: 'user', id: 'user', name: 'User' },
      to: [agent],
      kind: 'message',
      body: { content: 'Review what was done so far' },
    },
    seq,
  );
  foldEvent(view, trigger);
  const body = { upTo: seq, inputs: [seq], live: { time: 'now' }, join: 'full' as const, baseline: 'b' };
  beginTurn(view, { id: 't' as TurnId, ...body });
  return { view, agent, step: 0 };
}
