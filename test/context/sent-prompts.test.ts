import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { beginTurn, createView, foldAhead, foldEvent } from '../../src/context/index.ts';
import { type AgentId, type EventDraft, SYSTEM_AUTHOR, type TurnId } from '../../src/events/index.ts';
import { everyKindLog } from '../../score/every-kind-log.ts';
import { promptFor } from '../../score/replay.ts';
import { SECRET } from '../support/log-player.ts';

/** Digests of what is sent for a log with every kind of event. A change here breaks the cache of every prompt. */
const SENT: [framing: 'marked' | 'plain', agent: string, digest: string][] = [
  ['marked', 'ada', '01fb2188e350'],
  ['marked', 'bob', '6b9be9405f92'],
  ['marked', 'cyd', '042648fa1891'],
  ['marked', 'observer', '6439bd636c0b'],
  ['plain', 'ada', '642cbbb71bf8'],
  ['plain', 'bob', 'd99c9a866ffb'],
  ['plain', 'cyd', 'ef529944b653'],
  ['plain', 'observer', '186bc0a78d40'],
];

test.each(SENT)('%s prompts of @%s stay as they are, to the byte', (framing, reader, digest) => {
  const agent = reader as AgentId;
  const log = everyKindLog(12);
  const hash = createHash('sha256');
  for (let upTo = 5; upTo <= log.length; upTo += 5) {
    const view = createView(agent, SECRET);
    for (const event of log.slice(0, upTo)) foldEvent(view, event);
    const inputs = view.pending.slice(-2).map(({ seq }) => seq);
    const live = { time: 'now', ...(upTo % 2 === 0 && { memories: '#1 Uma: old' }) };
    const join = (['full', 'summary', 'fresh'] as const)[upTo % 3] ?? 'full';
    const turn = { id: 't' as TurnId, upTo, inputs, live, join, baseline: 'b' };
    beginTurn(view, framing === 'plain' ? { ...turn, framing } : turn);
    const note = { id: 'note', author: SYSTEM_AUTHOR, to: [], turn: 't', kind: 'injection' };
    const body = { content: 'one step left', oneStep: true };
    foldAhead(view, { ...note, body } as unknown as EventDraft, (text) => text.length);
    hash.update(JSON.stringify(promptFor({ view, agent, step: 1 }).messages));
  }
  expect(hash.digest('hex').slice(0, 12)).toBe(digest);
});
