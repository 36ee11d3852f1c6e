import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { loadAgentsFile } from '../src/library/config/load-agents-file.ts';
import { openTroupe } from '../src/library/runtime/create-troupe.ts';
import type { ScriptInput } from '../src/providers/script.ts';
import type { TroupeInput } from '../src/library/config/agents-file.ts';
import { ANA } from './support/engine-stage.ts';

const ROOT = path.dirname(import.meta.dirname);

/** The examples of docs/how-to/scripts.md by their headings: an agents file, and the lines of a conversation with it. */
function examples(): { heading: string; file: string; lines: string[] }[] {
  const doc = readFileSync(path.join(ROOT, 'docs/how-to/scripts.md'), 'utf8');
  return doc.split(/^## /m).flatMap((section) => {
    const [, file, text] = /^```ts\n([^]*?)^```\n```text\n([^]*?)^```$/m.exec(section) ?? [];
    const heading = section.slice(0, section.indexOf('\n'));
    return file && text ? [{ heading, file, lines: text.trim().split('\n') }] : [];
  });
}

/** What the agents say in one conversation after each message of Ana, a line for each. */
async function played(company: TroupeInput, words: readonly string[]): Promise<string[]> {
  await using troupe = await openTroupe(company, {});
  const lines: string[] = [];
  troupe.watch((note) => {
    if (note.type !== 'event' || note.event.kind !== 'message' || note.event.conversation !== 'c') return;
    const { author, body } = note.event;
    lines.push(`${author.kind === 'agent' ? `@${author.id}` : author.name}: ${body.content}`);
  });
  for (const content of words) {
    await troupe.send('c', { author: ANA, content });
    await troupe.idle();
  }
  return lines;
}

test.each(examples())(
  'docs/how-to/scripts.md, $heading: what is said is what stands there',
  async ({ file, lines }) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'troupe-scripts-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const agents = path.join(folder, 'agents.ts');
    const sources = {
      troupe: path.join(ROOT, 'src/index.ts'),
      zod: path.join(ROOT, 'node_modules/zod/index.js'),
    };
    writeFileSync(
      agents,
      file.replace(/from '(troupe|zod)'/g, (_, name: keyof typeof sources) => `from '${sources[name]}'`),
    );
    const company = (await loadAgentsFile(agents)) as TroupeInput;
    const words = lines.flatMap((line) => (line.startsWith('Ana: ') ? [line.slice('Ana: '.length)] : []));
    expect(await played(company, words)).toEqual(lines);
  },
);

test('docs/how-to/scripts.md has an example for each of its sections but the last', () => {
  expect(examples().map(({ heading }) => heading)).toEqual([
    'Rules',
    'Tools',
    'Several tasks',
    'Ids of tasks',
    'Functions',
    'Failures and slow models',
  ]);
});

const companyOf = (rules: ScriptInput['rules']): TroupeInput => ({
  agents: [{ id: 'bo', provider: 'scripted', script: { rules } }],
  defaults: { respondWhenUnaddressed: 'bo' },
});

async function failureOf(rule: unknown): Promise<string> {
  await using troupe = await openTroupe(companyOf([rule] as ScriptInput['rules']), {});
  await troupe.send('c', { author: ANA, content: 'hello' });
  await troupe.idle();
  const { events } = await troupe.events('c');
  const failed = events.find(({ kind }) => kind === 'turn.failed');
  return JSON.stringify(failed?.body);
}

test('a rule in code that throws, or returns what is no answer, fails the turn with its place and the reason', async () => {
  const throwing = () => {
    throw new Error('no bread');
  };
  expect(await failureOf(throwing)).toContain('rules[0] of the script threw: no bread');
  expect(await failureOf(() => ({ repl: 'hi' }))).toContain('rules[0] of the script returned no answer: ');
  expect(await failureOf(() => ({ repl: 'hi' }))).toContain('did you mean \\"reply\\"?');
  expect(await failureOf(() => ({ fail: { code: 'nonsense' } }))).toContain('rules[0].fail.code is');
  expect(await failureOf(() => null)).toContain('no rule of the script matches');
});

test('what a function returns is sent as it is: marks in it stay', async () => {
  expect(await played(companyOf([() => 'write {{last}}']), ['hello'])).toEqual([
    'Ana: hello',
    '@bo: write {{last}}',
  ]);
});

test('a wrong rule is refused at the start, also where functions are allowed', async () => {
  const open = (rule: unknown) => openTroupe(companyOf([rule] as ScriptInput['rules']), {});
  await expect(open({ repl: 'hi' })).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining('did you mean "reply"?'),
  });
  await expect(open({ when: { step: 0 } })).rejects.toThrow(/when\.step: is 0: give more than 0/);
  await expect(open('hi')).rejects.toMatchObject({ code: 'config_invalid' });
});
