import { describe, expect, test } from 'vitest';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import { startFakeAnthropic } from '../../packages/testing/src/fake-vendors.ts';
import { company, ROOM, UMA, VIK } from '../support/company.ts';
import { openTroupe } from '../support/mode.ts';
import { calls, lists, noteIn, only, room, verified } from '../support/supervision-stage.ts';

describe('L1 a list with open items', () => {
  test('keeps the agent working until nothing is left; then it answers', async () => {
    await using company = await room(
      ['todo'],
      [lists(['pending sail', 'done row']), 'I am done', lists(['done sail', 'done row']), 'now I am'],
    );
    await company.say(UMA, 'p', 'go');
    expect(company.requests('p')).toHaveLength(4);
    expect(noteIn(company, 3)).toContain('- [pending] sail');
    expect(noteIn(company, 3)).not.toContain('row');
    expect(await only(company, 'message')).toMatchObject([{}, { body: { content: 'now I am' } }]);
    expect(await only(company, 'turn.done')).toMatchObject([{ body: { steps: 4 } }]);
    await verified(company, `${ROOM}:p:1`, 4);
  });

  test('an item in progress holds the turn like a pending one', async () => {
    await using company = await room(
      ['todo'],
      [lists(['active sail']), 'done?', lists(['dropped sail']), 'so'],
    );
    await company.say(UMA, 'p', 'go');
    expect(noteIn(company, 3)).toContain('- [active] sail');
    expect(company.requests('p')).toHaveLength(4);
  });

  test.each([
    ['all done or dropped', lists(['done sail', 'dropped row'])],
    ['only set up for later', lists(['pending sail'], { later: true })],
    ['empty', lists([])],
  ])('%s: the answer is accepted', async (_, list) => {
    await using company = await room(['todo'], [list, 'done']);
    await company.say(UMA, 'p', 'go');
    expect(company.requests('p')).toHaveLength(2);
    expect(await only(company, 'injection')).toEqual([]);
  });

  test('an agent that waits for somebody may end the turn, and is held to the list once the result is there', async () => {
    const given = { to: 'd', task: 'count', wait: false };
    await using company = await room(
      ['todo', 'delegate'],
      [
        {
          calls: [
            ...(lists(['pending sail']).calls ?? []),
            { name: 'delegate', args: JSON.stringify(given) },
          ],
        },
        'I wait',
        'still not done',
        lists(['done sail']),
        'done',
      ],
    );
    await company.say(UMA, 'p', 'go');
    expect(noteIn(company, 2)).toBeNull();
    expect((await only(company, 'turn.done')).filter(({ author }) => author.id === 'p')).toMatchObject([
      { body: { steps: 2 } },
      { body: { steps: 3 } },
    ]);
    expect(noteIn(company, 4)).toContain('sail');
  });

  test('a question to people is waited for, too', async () => {
    await using company = await room(
      ['todo', 'ask'],
      [
        {
          calls: [
            ...(lists(['pending sail']).calls ?? []),
            { name: 'ask', args: JSON.stringify({ question: 'where to?', wait: false }) },
          ],
        },
        'I asked',
      ],
    );
    await company.say(UMA, 'p', 'go');
    expect(await only(company, 'question')).toHaveLength(1);
    expect(company.requests('p')).toHaveLength(2);
  });

  test('a question of an earlier turn is still waited for in the next', async () => {
    const question = { question: 'where to?', wait: false };
    await using company = await room(
      ['todo', 'ask'],
      [
        {
          calls: [...(lists(['pending sail']).calls ?? []), { name: 'ask', args: JSON.stringify(question) }],
        },
        'I asked',
        'still waiting',
      ],
    );
    await company.say(UMA, 'p', 'go');
    await company.say(UMA, 'p', 'well?');
    expect(company.requests('p')).toHaveLength(3);
    expect(await only(company, 'injection')).toEqual([]);
  });

  test('a task that another result has made unnecessary is not waited for', async () => {
    const given = (task: string) => ({
      name: 'delegate',
      args: JSON.stringify({ to: task, task, until: 'first' }),
    });
    await using team = await company(['p', 'd', 'e'], {
      agents: { p: { tools: ['todo', 'delegate'] }, e: { tools: ['ask'] } },
      answers: {
        p: [
          { calls: [...(lists(['pending sail']).calls ?? []), given('d'), given('e')] },
          'done, I think',
          lists(['done sail']),
          'done',
        ],
        e: [calls('ask', { question: 'which?' }), 'never'],
      },
    });
    await team.say(UMA, 'p', 'go');
    expect(noteIn(team, 3)).toContain('sail');
    expect(team.requests('p')).toHaveLength(4);
  });

  test('a list from an earlier turn holds in the next', async () => {
    await using company = await room(
      ['todo'],
      [
        lists(['pending sail'], { later: true }),
        'set up',
        lists(['pending sail']),
        'well',
        lists(['done sail']),
        'x',
      ],
    );
    await company.say(UMA, 'p', 'set it up');
    await company.say(UMA, 'p', 'now do it');
    expect(noteIn(company, 5)).toContain('sail');
    expect(company.requests('p')).toHaveLength(6);
  });
});

describe('L2 an answer without words', () => {
  test('is sent back if the agent can confirm it with no_response', async () => {
    await using company = await room(['no_response'], [{ text: '  ' }, 'here I am']);
    await company.say(UMA, 'p', 'hello?');
    expect(noteIn(company, 2)).toMatch(/no words.*no_response/);
    // An empty answer leaves nothing in the prompt.
    expect(company.sent('p', 2).slice(0, -1)).toEqual(company.sent('p', 1));
    expect(await only(company, 'message')).toHaveLength(2);
    expect(await only(company, 'step')).toEqual([]);
    await verified(company, `${ROOM}:p:1`, 2);
  });

  test('no_response is accepted at once, in silence', async () => {
    await using company = await room(['no_response'], [calls('no_response', { reason: 'not for me' })]);
    await company.say(UMA, 'p', 'hello?');
    expect(company.requests('p')).toHaveLength(1);
    expect(await only(company, 'message')).toHaveLength(1);
    expect(await only(company, 'injection')).toEqual([]);
  });

  test('is sent back, too, after calls that all failed', async () => {
    await using company = await room(
      ['fails', 'no_response'],
      [calls('fails'), { text: '' }, 'it is broken'],
    );
    await company.say(UMA, 'p', 'try it');
    expect(noteIn(company, 3)).toContain('no words');
    expect(await only(company, 'message')).toMatchObject([{}, { body: { content: 'it is broken' } }]);
  });

  test('an answer that reports an error in words is accepted: words are not judged', async () => {
    await using company = await room(['fails', 'no_response'], [calls('fails'), 'Error: broken']);
    await company.say(UMA, 'p', 'try it');
    expect(company.requests('p')).toHaveLength(2);
  });

  test('is accepted without the tool, and without supervision', async () => {
    await using quiet = await room([], [{ text: '' }]);
    await quiet.say(UMA, 'p', 'hello?');
    expect(quiet.requests('p')).toHaveLength(1);

    await using free = await room(['no_response'], [{ text: '' }], {}, { supervision: false });
    await free.say(UMA, 'p', 'hello?');
    expect(free.requests('p')).toHaveLength(1);
  });

  test('both reasons are in one note', async () => {
    await using company = await room(
      ['todo', 'no_response'],
      [lists(['pending sail']), { text: '' }, lists(['done sail']), 'ok'],
    );
    await company.say(UMA, 'p', 'go');
    expect(noteIn(company, 3)).toMatch(/sail.*no words/);
  });
});

describe('L3 a correction', () => {
  const answers = [lists(['pending sail']), 'I think so', calls('work'), lists(['done sail']), 'ready'];

  test('is in the next request once, at its end, and in no later one', async () => {
    await using company = await room(['todo', 'work'], [...answers, 'again']);
    await company.say(UMA, 'p', 'go');
    await company.say(UMA, 'p', 'and now?');
    const note = company.raw('p', 3).at(-1);
    expect(note?.content).toMatch(/^\[reminder #\d{6}\]\nYour turn cannot end yet/);
    for (const n of [1, 2, 4, 5, 6])
      expect(JSON.stringify(company.raw('p', n))).not.toContain('Your turn cannot end yet');
    await verified(company, `${ROOM}:p:1`, 5);
    await verified(company, `${ROOM}:p:2`, 1);
  });

  test('later requests begin with the bytes of the corrected one, without the note', async () => {
    await using company = await room(['todo', 'work'], [...answers, 'again']);
    await company.say(UMA, 'p', 'go');
    await company.say(UMA, 'p', 'and now?');
    for (let n = 1; n < 6; n++) {
      const before = company.raw('p', n);
      const kept = noteIn(company, n) === null ? before : before.slice(0, -1);
      expect(company.raw('p', n + 1).slice(0, kept.length)).toEqual(kept);
    }
    // Its earlier text stands as a plain message of its own.
    expect(company.raw('p', 4)[3]).toEqual({ role: 'assistant', content: 'I think so' });
  });

  test('others see the reply, and never the correction', async () => {
    await using company = await room(['todo', 'work'], answers);
    await company.say(UMA, 'p', 'go');
    await company.say(VIK, 'd', 'what did p do?');
    const seen = JSON.stringify(company.raw('d'));
    expect(seen).toContain('I think so');
    expect(seen).toContain('ready');
    expect(seen).not.toContain('cannot end');
    expect((await company.troupe.promptOf(`${ROOM}:d:1`)).verified).toBe(true);
  });

  test('is counted as a layer of its own, and no cache breakpoint follows it', async () => {
    await using company = await room(['todo', 'work'], answers);
    await company.say(UMA, 'p', 'go');
    const prompt = await company.troupe.promptOf(`${ROOM}:p:1`, 3);
    const { layers, tokens, breakpoints, count, messages } = prompt;
    expect(layers.at(-1)).toMatchObject({ name: 'note', stability: 'step' });
    expect(layers.reduce((sum, layer) => sum + layer.tokens, 0)).toBe(tokens.total);
    expect(messages).toHaveLength(count);
    expect(Math.max(...breakpoints)).toBe(count - 2);
    const next = await company.troupe.promptOf(`${ROOM}:p:1`, 4);
    expect(next.layers.map(({ name }) => name)).not.toContain('note');
  });

  test('breaks no cache: all prompts are found again, each continuing the one before', async () => {
    await using company = await room(
      ['todo', 'work', 'no_response'],
      [lists(['pending sail']), { text: '' }, 'half way', lists(['done sail']), 'ready'],
    );
    await company.say(UMA, 'p', 'go');
    const { rows } = await company.troupe.cacheCost(ROOM, 'p');
    expect(rows.map(({ step, verified, broke }) => [step, verified, broke])).toEqual(
      [1, 2, 3, 4, 5].map((step) => [step, true, null]),
    );
    const { cached } = await company.troupe.promptOf(`${ROOM}:p:1`, 4);
    const before = await company.troupe.promptOf(`${ROOM}:p:1`, 3);
    expect(cached.messages).toBe(before.count - 1);
  });

  test('reaches Anthropic as a separate message without a breakpoint, and without empty calls', async () => {
    const replies = [
      lists(['pending sail']),
      { text: 'I think so' },
      lists(['done sail']),
      { text: 'ready' },
    ];
    await using vendor = await startFakeAnthropic(({ number }) => replies[number - 1] ?? {});
    const agent = {
      id: 'p',
      provider: 'anthropic',
      model: 'm',
      baseUrl: vendor.url,
      tools: ['todo'],
    } as AgentInput;
    await using troupe = await openTroupe({ agents: [agent] }, { env: { ANTHROPIC_API_KEY: 'k' } });
    await troupe.send(ROOM, { author: UMA, to: ['p'], content: 'go' });
    await troupe.idle();
    const bodies = vendor.requests.map(
      ({ body }) => (body as { messages: { role: string; content: Block[] }[] }).messages,
    );
    const [said, note] = (bodies[2] ?? []).slice(-2);
    expect(said).toMatchObject({
      role: 'assistant',
      content: [{ type: 'text', text: 'I think so', cache_control: { type: 'ephemeral' } }],
    });
    expect(note?.role).toBe('user');
    expect(note?.content).toHaveLength(1);
    expect(note?.content[0]).not.toHaveProperty('cache_control');
    expect(note?.content[0]?.text).toContain('cannot end yet');
    const last = bodies[3] ?? [];
    expect(last.at(-2)).toMatchObject({
      role: 'assistant',
      content: [{ text: 'I think so' }, { type: 'tool_use' }],
    });
    expect(JSON.stringify(last)).not.toContain('cannot end yet');
  });
});

type Block = { type: string; text?: string };

test('L5 words decide nothing: an answer without a list is accepted, whatever it promises', async () => {
  await using company = await room(['todo', 'work'], ['TODO: I will do it later. Error: not finished!']);
  await company.say(UMA, 'p', 'go');
  expect(company.requests('p')).toHaveLength(1);
  expect(await only(company, 'guard.stopped')).toEqual([]);
});

test('the result of a task is the final words, and is not delivered before they are accepted', async () => {
  await using company = await room(['delegate'], [calls('delegate', { to: 'd', task: 'sail' }), 'thanks'], {
    agents: { d: { tools: ['todo'] } },
    answers: { d: [lists(['pending sail']), 'not yet', lists(['done sail']), 'I sailed'] },
  });
  await company.say(UMA, 'p', 'go');
  expect(await only(company, 'delegation.ended')).toMatchObject([{ body: { result: 'I sailed' } }]);
});
