import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { beginTurn, createView, foldAhead, foldEvent } from '../../src/context/index.ts';
import { type AgentId, type EventDraft, SYSTEM_AUTHOR, type TurnId } from '../../src/events/index.ts';
import { everyKindLog } from '../../score/every-kind-log.ts';
import { promptFor } from '../../score/replay.ts';
import { SECRET } from '../support/log-player.ts';

/** Digests of what earlier versions sent for a log with every kind of event. They may never change. */
const SENT: [rendering: number, agent: string, digest: string][] = [
  [1, 'ada', 'b36e35477821'],
  [1, 'bob', '4a1c36262cff'],
  [1, 'cyd', '9fbd067ae6b7'],
  [1, 'observer', '79eccad561be'],
  [2, 'ada', '7bc9d41817d0'],
  [2, 'bob', 'ccc8fa2ee78d'],
  [2, 'cyd', '5651cb28c030'],
  [2, 'observer', 'bc76f74e355f'],
];

test.each(SENT)(
  'turns that pinned rendering %i are rendered as before for %s',
  (rendering, reader, digest) => {
    const agent = reader as AgentId;
    const log = everyKindLog(12);
    const hash = createHash('sha256');
    for (let upTo = 5; upTo <= log.length; upTo += 5) {
      const view = createView(agent, SECRET);
      for (const event of log.slice(0, upTo)) foldEvent(view, event);
      const inputs = view.pending.slice(-2).map(({ seq }) => seq);
      const live = { time: 'now', ...(upTo % 2 === 0 && { memories: '#1 Uma: old' }) };
      const join = (['full', 'summary', 'fresh'] as const)[upTo % 3] ?? 'full';
      beginTurn(view, { id: 't' as TurnId, upTo, inputs, live, join, baseline: 'b', rendering });
      const note = { id: 'note', author: SYSTEM_AUTHOR, to: [], turn: 't', kind: 'injection' };
      const body = { content: 'one step left', oneStep: true };
      foldAhead(view, { ...note, body } as unknown as EventDraft, (text) => text.length);
      hash.update(JSON.stringify(promptFor({ view, agent, step: 1 }).messages));
    }
    expect(hash.digest('hex').slice(0, 12)).toBe(digest);
  },
);
