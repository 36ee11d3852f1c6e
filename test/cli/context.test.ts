import path from 'node:path';
import { expect, test } from 'vitest';
import { loadAgentsFile } from '../../src/library/config/load-agents-file.ts';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import { AGENTS, type Ran, workplace, type Workplace } from './harness.ts';

type Prompt = {
  messages: unknown[];
  tokens: { total: number; estimate: number; window: number };
  cached: { messages: number; tokens: number };
  compaction: { at: number; left: number };
  cuts: object[];
};

/** The part before the messages. */
function head({ out }: Ran): string {
  return out.slice(0, out.indexOf('── 0 system'));
}

/** Sends the messages to conversation c1, one after the other, and waits for the answers. */
async function talk(
  { dir }: Workplace,
  contents: readonly string[],
  to: string[] = ['planner'],
): Promise<void> {
  const agents = await loadAgentsFile(path.join(dir, 'agents.json'));
  await using troupe = await createTroupe(agents, { data: path.join(dir, '.troupe') });
  for (const content of contents) {
    await troupe.send('c1', { author: { kind: 'user', id: 'ana', name: 'Ana' }, to, content });
    await troupe.idle();
  }
}

test('the window is drawn in cells of half a per cent in 80 columns, with cached cells in capitals', async () => {
  using place = workplace();
  await talk(place, ['Hello'], ['worker']);
  const fresh = await place.call(['context', 'c1', 'planner']);
  expect(head(fresh)).toContain('cached    nothing of this prompt was sent before');
  await talk(place, ['Hello']);
  const shown = head(await place.call(['context', 'c1', 'planner']));
  expect(shown).toMatch(/^manager; answers up to 4,096 tokens$/m);
  expect(shown).toContain('answers nothing: no event waits for the agent');
  const rows = shown.split('\n').filter((line) => /^\S( \S){19}$/.test(line));
  expect(rows).toHaveLength(10);
  const cells = rows.join(' ').split(' ');
  expect(cells.filter((cell) => cell === '▒')).toHaveLength(6);
  expect(cells.join('')).toMatch(/^R+PE?HH?h+▒{6}·+$/);
  expect(shown).toMatch(/^R rules +\d+ +0\.\d % +epoch +[0-9a-f]{10} +baseline:planner:1$/m);
  expect(shown).toMatch(/^▒ reserved +4,096 +3\.2 %$/m);
  expect(shown).toMatch(/^usage +\d+ tokens estimated, 0 % of the room: normal, not calibrated yet$/m);
  expect(shown).toMatch(/^cached +\d+ tokens in 4 of 5 messages match the last prompt \(capital letters\)$/m);
  expect(shown).toMatch(/^compacts +in 98,\d{3} tokens, at 99,124$/m);
  expect(shown).not.toContain('\u001b');
  expect(Math.max(...shown.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
});

test('on a terminal the marks are coloured cells', async () => {
  using place = workplace();
  await talk(place, ['Hello']);
  const { out } = await place.run(['context', 'c1', 'planner'], { env: { FORCE_COLOR: '1' } });
  expect(out).toContain('\u001b[');
  expect(out).toContain('■');
  expect(out).toContain('□');
});

test('the cached part is that of the last prompt, in every process', async () => {
  using place = workplace();
  await talk(place, ['one', 'two']);
  const sent = (await place.call(['context', 'c1', 'planner', '--turn', '2', '--json'])).json as Prompt;
  const first = (await place.call(['context', 'c1', 'planner', '--turn', '1', '--json'])).json as Prompt;
  expect(sent.cached).toEqual({ messages: first.messages.length, tokens: first.tokens.total });
  expect(first.cached).toEqual({ messages: 0, tokens: 0 });
  const direct = (await place.call(['context', 'c1', 'planner', '--json'])).json as Prompt;
  expect(direct.cached).toEqual({ messages: sent.messages.length, tokens: sent.tokens.total });
  expect(direct.compaction.left).toBe(direct.compaction.at - direct.tokens.estimate);
  await using dev = await place.dev();
  const served = await place.call(['context', 'c1', 'planner', '--json', '--url', dev.url]);
  expect(served.json).toEqual(direct);
});

test('prunes and compactions are listed with their reason and the remaining cache', async () => {
  const agents = AGENTS.agents.map((agent) => ({ ...agent, contextWindow: 2_400, maxOutputTokens: 200 }));
  using place = workplace({ agents: { ...AGENTS, agents, context: { summaries: 'extract' } } });
  await talk(
    place,
    Array.from({ length: 7 }, (_, n) => `${n} ${'lorem ipsum '.repeat(120)}`),
  );
  const { rows } = (await place.call(['context', 'c1', 'planner', '--cache-cost', '--json'])).json as {
    rows: { turn: string; broke: { layer: string } | null }[];
  };
  const turn = rows.find(({ broke }) => broke?.layer === 'summary')?.turn ?? 'none was cut';
  const prompt = (await place.call(['context', 'c1', 'planner', '--turn', turn, '--json'])).json as Prompt;
  expect(prompt.cuts).toMatchObject([
    {
      kind: 'adopt',
      reason: 'over_budget',
      compaction: 'compaction:1',
      by: 'planner',
      strategy: 'extraction',
    },
  ]);
  expect(prompt.cached.messages).toBe(1);
  const shown = head(await place.call(['context', 'c1', 'planner'])).replace(/\s+/g, ' ');
  expect(shown).toMatch(
    /cut compaction:1 covers events 1–\d+: over_budget, [\d,]+ → [\d,]+ tokens, by @planner with extraction/,
  );
  const dollars = await place.call(['cost', 'c1']);
  expect(dollars.out).toMatch(/@planner/);
  expect(dollars.out).toMatch(/unknown: \d+ calls of @planner/);
  const cost = await place.call(['context', 'c1', 'planner', '--cache-cost']);
  expect(cost.out).toMatch(/^ {4}broke in summary at message 1: summary adopted \(baseline:planner:2\)$/m);
});

test('two turns, or a turn and the next prompt, are compared layer by layer and line by line', async () => {
  using place = workplace();
  await talk(place, ['one', 'two\nof three lines\nof it']);
  const { out } = await place.call(['context', 'c1', 'planner', '--turn', '2', '--against', '1']);
  expect(out).toMatch(
    /^@planner: c1:planner:1, step 1 → c1:planner:2, step 1\ntokens +\d+ → \d+ \(\+\d+\)\n/,
  );
  expect(out).toMatch(/^messages +the first 2 of 2 and 4 are the same\ncache +nothing broke/m);
  expect(out).toMatch(/^~ history +\d+ +\d+ +\+\d+ +changed$/m);
  expect(out).toMatch(/^── \+ 3 user ─+\n@@ -1,0 \+1,\d+ @@\n\+two\n\+of three lines\n\+of it$/m);
  const next = await place.call(['context', 'c1', 'planner', '--against', 'c1:planner:2', '--json']);
  expect(next.json).toMatchObject({
    a: { turn: 'c1:planner:2' },
    b: { turn: null },
    messages: { shared: 4, changes: [{ a: null, b: 4, role: 'assistant', hunks: [{ lines: ['+plan 2'] }] }] },
    broke: null,
  });
  await using dev = await place.dev();
  const args = ['context', 'c1', 'planner', '--against', '2', '--json', '--url', dev.url];
  const served = await place.call(args);
  expect(served.json).toEqual(next.json);
});

test('a long difference is shortened, and complete as JSON', async () => {
  using place = workplace();
  const lines = Array.from({ length: 60 }, (_, n) => `line ${n}`).join('\n');
  await talk(place, ['short', lines]);
  const args = ['context', 'c1', 'planner', '--turn', '2', '--against', '1'];
  const { out } = await place.call(args);
  expect(out).toContain('+line 22\n… ');
  expect(out).not.toContain('line 23');
  expect((await place.call([...args, '--json'])).out).toContain('+line 59');
});

test("the cost of an agent's prompts is listed by call and in total, as by a server", async () => {
  using place = workplace();
  await talk(place, ['one '.repeat(900), 'two '.repeat(900), 'three '.repeat(900)]);
  const ran = await place.call(['context', 'c1', 'planner', '--cache-cost']);
  expect(ran).toMatchObject({ code: 0, err: '' });
  expect(ran.out).toMatch(/^@planner in c1: prompts in the cache of anthropic \(test\)$/m);
  expect(ran.out).toMatch(/^turn\.step +input +read +written +fresh +cost +reported read\/written$/m);
  expect(ran.out).toMatch(/^3\.1 +[\d,]+ +[1-9][\d,]* +[1-9][\d,]* +0 +[\d,]+ +-$/m);
  expect(ran.out).toMatch(/^total +[\d,]+ input tokens in 3 calls: [\d,]+ read \(\d+\.\d %\)/m);
  expect(ran.out).toMatch(/without a cache/);
  const direct = await place.call(['context', 'c1', 'planner', '--vendor', 'openai', '--json']);
  expect(direct.json).toMatchObject({
    vendor: 'openai',
    rows: [{ turn: 'c1:planner:1', step: 1, broke: null, reported: null, verified: true }, {}, {}],
    total: { written: 0 },
  });
  await using dev = await place.dev();
  const args = ['context', 'c1', 'planner', '--vendor', 'openai', '--json', '--url', dev.url];
  expect((await place.call(args)).json).toEqual(direct.json);
  const nothing = await place.call(['context', 'c1', 'worker', '--cache-cost']);
  expect(nothing).toMatchObject({
    code: 0,
    out: expect.stringContaining('no finished turn has a recorded prompt'),
  });
});

test('an invalid request is refused with a hint', async () => {
  using place = workplace();
  await talk(place, ['x']);
  for (const [args, message] of [
    [['--turn', '9'], /^turn_unknown: no prompt of turn "c1:planner:9" .*"troupe ls c1" shows/],
    [['--against', 'nonsense'], /^turn_unknown: "nonsense" is not a turn id/],
    [
      ['--against', 'c1:worker:1'],
      /^event_invalid: turn c1:worker:1 belongs to @worker in c1: name a turn of @pla/,
    ],
    [['--turn', '1', '--against', 'c2:planner:1'], /^event_invalid: .* belongs to @planner in c2/],
    [['--step', '1', '--against', '1'], /^event_invalid: --step selects a step of a past turn/],
    [['--cache-cost', '--turn', '1'], /^event_invalid: --cache-cost covers all turns/],
    [['--vendor', 'acme'], /^usage: .*Allowed choices are anthropic, openai, gemini, deepseek/],
  ] as const) {
    const { code, err } = await place.call(['context', 'c1', 'planner', ...args]);
    expect(err).toMatch(message);
    expect(code).not.toBe(0);
  }
});

test('the help of context fits on a screen', async () => {
  using place = workplace();
  const { out } = await place.call(['context', '--help']);
  const lines = out.trimEnd().split('\n');
  expect(lines.length).toBeLessThanOrEqual(24);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
});
