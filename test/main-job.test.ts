import { createReadStream, readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { beginTurn, createView, foldEvent, forkView } from '../src/context/index.ts';
import type { AgentId, Event, EventId, PromptMessage, TurnId } from '../src/events/index.ts';
import { invalidities, misplaced, visibleSeqs } from './support/check-prompt.ts';
import { company, type Company, ROOM, USER } from './support/company.ts';
import type { WireMessage } from './support/compact.ts';
import { logged, promptOf, SECRET } from './support/log-player.ts';
import { ASSISTANT, DATA, HAS_DATA, realLogs } from './support/real-logs.ts';

const ASK = 'Review what was done so far';
const REVIEW = 'The review: eighteen calls were never answered.';

if (!HAS_DATA) test.skip('skipped: no ../shared/data', () => undefined);

describe.runIf(HAS_DATA)('the main job on the pi session', () => {
  let room: Company;
  let log: Event[];
  let request: PromptMessage[];

  beforeAll(async () => {
    room = await company(['reviewer', ASSISTANT], {
      agents: {
        reviewer: { contextWindow: 2_000_000 },
        assistant: { contextWindow: 2_000_000 },
      },
      answers: { reviewer: [REVIEW] },
    });
    await room.troupe.import(createReadStream(path.join(DATA, 'pi-large-session.jsonl')), {
      conversation: ROOM,
      agent: ASSISTANT,
      fileName: 'pi-large-session.jsonl',
    });
    log = (await room.troupe.events(ROOM, { limit: 5_000 })).events;
    await room.say(USER, 'reviewer', ASK);
    request = room.raw('reviewer').map(fromWire);
    return () => room[Symbol.asyncDispose]();
  });

  test('sends exactly one valid request', () => {
    expect(room.requests('reviewer')).toHaveLength(1);
    expect(room.requests(ASSISTANT)).toHaveLength(0);
    expect(invalidities(request)).toEqual([]);
    expect(request.at(-1)?.content.startsWith(ASK)).toBe(true);
  });

  test('sends every text of the transcript as often as it occurs, and no call or result', () => {
    const { user, assistant } = sourceTexts();
    expect([user.length, assistant.length]).toEqual([88, expect.any(Number)]);
    const said = request.slice(0, -1).map(({ content }) => content);
    expect(said.map(bare).sort()).toEqual([...user, ...assistant].sort());
  });

  test('sends no words of others as its own', () => {
    expect(request.filter(({ role }) => role !== 'user')).toEqual([]);
  });

  test('writes the reply into the log, and into the prompts of the other agent, once', async () => {
    const { events, head } = await room.troupe.events(ROOM, { limit: 5_000 });
    expect(head).toBe(events.length);
    expect(events.filter(({ body }) => JSON.stringify(body).includes(REVIEW))).toMatchObject([
      { kind: 'message', author: { kind: 'agent', id: 'reviewer' } },
    ]);
    const { messages } = await room.troupe.prompt(ROOM, ASSISTANT);
    expect(messages.filter(({ content }) => content.includes(REVIEW))).toHaveLength(1);
    expect(misplaced(messages, visibleSeqs(events, ASSISTANT))).toEqual([]);
  });

  test('the other agent, asked next, gets its own words, calls and results, and the review, each once', async () => {
    await room.say(USER, ASSISTANT, 'And what do you say?');
    const sent = room.raw(ASSISTANT).map(fromWire);
    expect(invalidities(sent)).toEqual([]);
    expect(sent.filter(({ content }) => content.includes(REVIEW)).map(({ role }) => role)).toEqual(['user']);
    const calls = sent.flatMap((message) => (message.role === 'assistant' ? (message.calls ?? []) : []));
    expect(calls).toHaveLength(391);
    expect(sent.filter(({ role }) => role === 'tool')).toHaveLength(391);
    expect(sent.filter(({ content }) => content.includes('no result was recorded'))).toHaveLength(18);
    const { messages, verified } = await room.troupe.promptOf(`${ROOM}:${ASSISTANT}:1`);
    expect(verified).toBe(true);
    const upTo = messages.flatMap(({ seqs }) => seqs).reduce((a, b) => Math.max(a, b), 0);
    const { events } = await room.troupe.events(ROOM, { limit: 5_000 });
    expect(misplaced(messages, visibleSeqs(events.slice(0, upTo), ASSISTANT))).toEqual([]);
    expect(log.length).toBeLessThan(upTo);
  });
});

describe.runIf(HAS_DATA)('the same for the airline trajectories', () => {
  test('for all 60, cut at every index, each agent gets one valid prompt with every event once', async () => {
    const problems: string[] = [];
    for (const log of await realLogs('tau/gpt-4o-airline-60.json')) {
      for (const agent of ['reviewer', ASSISTANT]) {
        const view = createView(agent as AgentId, SECRET);
        for (const event of log) {
          foldEvent(view, event);
          const cut = log.slice(0, event.seq);
          const prompt = asked(forkView(view), cut);
          const found = [
            ...invalidities(prompt),
            ...misplaced(prompt, [...visibleSeqs(cut, agent), cut.length + 1]),
            ...misattributed(prompt, cut, agent),
          ];
          problems.push(...found.map((problem) => `${event.conversation}@${event.seq} ${agent}: ${problem}`));
        }
      }
    }
    expect(problems).toEqual([]);
  });
});

function asked(view: ReturnType<typeof createView>, cut: readonly Event[]): PromptMessage[] {
  const seq = cut.length + 1;
  const message = { kind: 'message', body: { content: ASK } } as const;
  foldEvent(view, logged({ id: 'ask' as EventId, author: USER, to: [view.agent], ...message }, seq));
  beginTurn(view, { id: 't' as TurnId, upTo: seq, inputs: [seq], live: {}, join: 'full', baseline: 'b' });
  return promptOf(view).messages;
}

/** Texts that appear in a message of the wrong role, or altered. */
function misattributed(prompt: readonly PromptMessage[], cut: readonly Event[], agent: string): string[] {
  return prompt.flatMap(({ role, seqs, content }) =>
    seqs.flatMap((seq) => {
      const event = cut[seq - 1];
      if (!event || (event.kind !== 'message' && event.kind !== 'step')) return [];
      const mine = event.author.id === agent;
      const problems = mine === (role === 'assistant') ? [] : [`event ${seq} is ${role}`];
      // Lines of others that could pass for marks or numbers of Troupe are indented.
      const said = mine ? [content] : [content, content.replaceAll('\n ', '\n')];
      const isWhole = said.some((text) => text.includes(event.body.content));
      return isWhole ? problems : [...problems, `event ${seq} was changed`];
    }),
  );
}

function fromWire(
  { role, content, tool_calls, tool_call_id }: WireMessage,
  index: number,
  all: WireMessage[],
) {
  const calls = tool_calls?.map(({ id, function: { name, arguments: args } }) => ({ id, name, args }));
  const of = all
    .slice(0, index)
    .findLast((message) => message.tool_calls?.some(({ id }) => id === tool_call_id));
  const name = of?.tool_calls?.find(({ id }) => id === tool_call_id)?.function.name ?? '';
  return {
    role,
    content: content ?? '',
    calls,
    call: tool_call_id ?? '',
    name,
    failed: false,
    seqs: [],
  } as PromptMessage;
}

/** The original text: without header, fence, interruption mark and escaping. */
function bare(content: string): string {
  const fenced = /^\[@assistant #\d{6}\]\n([^]*)\n#\d{6}$/.exec(content);
  return (fenced?.[1] ?? content).replace(/^\(interrupted\) /, '').replace(/\\(?=[[<])|(?<=<)\\/g, '');
}

/** Reads the file without the importer: texts by role, empty ones left out. */
function sourceTexts(): Record<'user' | 'assistant', string[]> {
  const texts: Record<'user' | 'assistant', string[]> = { user: [], assistant: [] };
  for (const line of readFileSync(path.join(DATA, 'pi-large-session.jsonl'), 'utf8').split('\n')) {
    if (line === '') continue;
    const { message } = JSON.parse(line) as {
      message?: { role: string; content: string | { type: string; text?: string }[] };
    };
    if (message?.role !== 'user' && message?.role !== 'assistant') continue;
    const { content } = message;
    const parts = typeof content === 'string' ? [content] : content.flatMap(({ text }) => text ?? []);
    const text = parts.join('\n');
    if (text.trim() !== '') texts[message.role].push(text.replace(/\\(?=[[<])|(?<=<)\\/g, ''));
  }
  return texts;
}
