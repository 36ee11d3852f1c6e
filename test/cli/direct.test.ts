import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { workplace } from './harness.ts';

test('send opens the data itself, waits for the reply, and prints it as text or JSON', async () => {
  using place = workplace();
  const first = await place.call(['send', 'c1', 'Hello', '--json', '--as', 'Ana B']);
  expect(first.err).toBe('');
  expect(first.json).toMatchObject({
    event: { seq: 1, to: ['planner'], author: { kind: 'user', id: 'ana-b', name: 'Ana B' } },
    replies: [{ kind: 'message', author: { id: 'planner' }, body: { content: 'plan 1' } }],
  });
  const second = await place.run(['send', 'c1', '-', '--to', 'worker,planner'], { input: 'from stdin' });
  expect(second).toMatchObject({ code: 0, err: '' });
  expect(second.out.trim().split('\n').toSorted()).toEqual(['planner: plan 2', 'worker: work 1']);
  const sendAs = (text: string) =>
    place.call(['send', 'c1', text, '--id', 'm1', '--to', 'worker', '--json', '--as', 'Ana']);
  const again = await sendAs('x');
  const twice = await sendAs('x');
  expect(twice.json['event']).toEqual(again.json['event']);
  const conflict = await sendAs('y');
  expect(conflict).toMatchObject({ code: 1, json: { error: { code: 'event_conflict' } } });
});

test('messages can be listed, traced, and shown as each agent sees them', async () => {
  using place = workplace();
  await place.call(['send', 'c1', 'Hello']);
  expect((await place.call(['ls', '--json'])).json).toMatchObject({ conversations: [{ id: 'c1' }] });
  expect((await place.call(['ls', 'c1', '--json'])).json).toMatchObject({
    actors: [{ agent: 'planner', status: 'idle', lastTurn: 'c1:planner:1' }],
  });
  expect((await place.call(['trace', 'c1:planner:1', '--json'])).json).toMatchObject({
    status: 'done',
    prompts: [{}],
  });
  const prompt = await place.call(['context', 'c1', 'worker', '--json']);
  expect(prompt.json).toMatchObject({ agent: 'worker', turn: null, tokens: { window: 128_000 } });
  expect(JSON.stringify(prompt.json['messages'])).toContain('plan 1');
  const past = await place.call(['context', 'c1', 'planner', '--turn', '1', '--step', '1', '--json']);
  expect(past.json).toMatchObject({ turn: 'c1:planner:1', verified: true });

  expect((await place.call(['ls'])).out).toMatch(/conversation +state +events +last +about\nc1 +quiet /);
  expect((await place.call(['ls', 'c1'])).out).toMatch(/@planner +idle/);
  const trace = (await place.call(['trace', 'c1:planner:1'])).out;
  expect(trace).toMatch(/^c1:planner:1 done/);
  expect(trace).toMatch(/turn\.started .*answers 1/);
  expect(trace).toMatch(/step +model +sent +messages +tokens +cost +layers/);
  const grid = (await place.call(['context', 'c1', 'worker'])).out;
  expect(grid).toMatch(/^@worker in c1: next prompt\n.*\n.* of 128,000 tokens/);
  expect(grid).toMatch(/── 1 user · seq 1 ─/);
  expect(grid).not.toContain('\u001b');
});

test('foreign text cannot control the terminal', async () => {
  using place = workplace();
  await place.call(['send', 'c1', '\u001b]0;owned\u0007 \u202eabc']);
  const { out } = await place.call(['context', 'c1', 'worker']);
  expect(out).toContain('␛]0;owned␇ \ufffdabc');
});

test('a failed turn makes send fail with the reason', async () => {
  using place = workplace();
  const ran = await place.call(['send', 'c1', 'x', '--to', 'broken', '--json']);
  expect(ran.code).toBe(1);
  expect(JSON.parse(ran.out)).toMatchObject({ event: { seq: 1 }, replies: [] });
  expect(ran.json).toMatchObject({ error: { code: 'provider_auth', data: { agent: 'broken' } } });
});

test('an import reports repairs, and its export imports as the same conversation', async () => {
  using place = workplace();
  const lines = [
    { role: 'user', content: 'Where is it?' },
    {
      role: 'assistant',
      content: '',
      tool_calls: [{ id: 'k1', type: 'function', function: { name: 'find', arguments: '{}' } }],
    },
    { role: 'user', content: 'Never mind' },
    { role: 'assistant', content: 'Fine.' },
  ];
  const file = place.write('talk.jsonl', lines.map((line) => JSON.stringify(line)).join('\n'));
  const done = await place.call(['import', file, '--conversation', 'old', '--agent', 'worker', '--json']);
  expect(done.json).toMatchObject({
    conversation: 'old',
    conversations: ['old'],
    repaired: [{ kind: 'missing_result', count: 1 }],
  });
  const ran = await place.run(['import', '-', '--conversation', 'old2'], {
    input: readFileSync(file, 'utf8'),
  });
  expect(ran.out).toMatch(
    /^4 records read as openai: \d+ events in conversation old2\n(?: {2}.*\n)?repaired:\n {2}missing result +1/,
  );
  const plain = await place.call(['export', 'old']);
  expect(plain.out.split('\n')[0]).toBe('{"troupe":1,"conversation":"old","secrets":"hidden"}');
  const out = path.join(place.dir, 'out.jsonl');
  const saved = await place.call(['export', 'old', '--out', out, '--json']);
  expect(readFileSync(out, 'utf8')).toBe(plain.out);
  expect(saved.json).toEqual({ conversation: 'old', out, lines: plain.out.trimEnd().split('\n').length });
  const back = await place.call(['import', out, '--conversation', 'copy', '--json']);
  expect(back.json).toMatchObject({ conversation: 'copy', format: 'troupe', repaired: [] });
  const none = await place.call(['export', 'nope', '--out', path.join(place.dir, 'none')]);
  expect([none.code, none.err]).toMatchObject([1, expect.stringMatching(/^conversation_unknown: /)]);
  expect(existsSync(path.join(place.dir, 'none'))).toBe(false);
});

test('reading data runs no turns and needs no keys', async () => {
  const keyed = {
    id: 'cloud',
    provider: 'anthropic',
    model: 'm',
    contextWindow: 200_000,
    apiKeyEnv: 'NO_SUCH_KEY_HERE',
  };
  using place = workplace({ agents: { agents: [keyed] } });
  const file = place.write('t.jsonl', '{"role":"user","content":"Hi"}\n{"role":"assistant","content":"Ho"}');
  for (const args of [
    ['import', file, '--conversation', 'c1'],
    ['ls'],
    ['export', 'c1'],
    ['context', 'c1', 'cloud'],
  ]) {
    expect(await place.call(args)).toMatchObject({ code: 0, err: '' });
  }
  expect((await place.call(['ls', '--json'])).json).toMatchObject({ conversations: [{ head: 2 }] });
  const send = await place.call(['send', 'c1', 'x', '--to', 'cloud']);
  expect(send.code).toBe(1);
  expect(send.err).toMatch(/^config_invalid: .*NO_SUCH_KEY_HERE/);
});

test('an agent without turns is not awaited', async () => {
  using place = workplace();
  await place.call(['send', 'c1', 'x', '--to', 'worker']);
  const dev = await place.dev();
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ command: 'pause', conversation: 'c1', agent: 'worker' });
  await fetch(`${dev.url}/api/commands`, { method: 'POST', headers, body });
  const online = await place.call(['send', 'c1', 'y', '--to', 'worker', '--wait', '--json']);
  expect(online).toMatchObject({
    code: 1,
    json: { error: { code: 'command_refused', data: { agent: 'worker' } } },
  });
  await dev[Symbol.asyncDispose]();
  const offline = await place.call(['send', 'c1', 'y', '--to', 'worker', '--json']);
  expect(offline).toMatchObject({ code: 1, json: { error: { code: 'command_refused' } } });
});

test('send reports what happens to a message for a busy agent, and sets a mode', async () => {
  using place = workplace();
  const sent = await place.call(['send', 'c1', 'x', '--while-busy', 'steer', '--json']);
  expect(sent).toMatchObject({ code: 0, json: { event: { whileBusy: 'steer' } } });
  expect(await place.call(['send', 'c1', 'x', '--while-busy', 'hurry'])).toMatchObject({ code: 2 });
  expect(await place.call(['send', 'c2', 'x', '--mode', 'chat', '--json'])).toMatchObject({
    code: 0,
    json: { event: { context: { mode: 'chat' } } },
  });
  const { out } = await place.call(['send', '--help']);
  expect(Math.max(...out.split('\n').map((line) => line.length))).toBeLessThanOrEqual(110);
  expect(out.trimEnd().split('\n').length).toBeLessThanOrEqual(24);
});
