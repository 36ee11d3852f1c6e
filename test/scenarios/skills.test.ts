import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { loadAgentsFile } from '../../src/library/config/load-agents-file.ts';
import { type Company, company, ROOM, UMA } from '../support/company.ts';
import { openTroupe } from '../support/mode.ts';
import { scripted } from './stage.ts';

const made: string[] = [];
afterAll(() => made.forEach((dir) => rmSync(dir, { recursive: true, force: true })));

const RELEASE = `---
name: release
description: >
  How a version is released.
license: MIT
---
# Releasing
1. Read checklist.md.`;

/** A new directory of skills: the files of each, by its folder. */
function skills(folders: Record<string, Record<string, string | Buffer>>): string {
  const dir = mkdtempSync(path.join(tmpdir(), 'skills-'));
  made.push(dir);
  for (const [folder, files] of Object.entries(folders))
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(path.dirname(path.join(dir, folder, name)), { recursive: true });
      writeFileSync(path.join(dir, folder, name), content);
    }
  return dir;
}

function skill(name: string, text = 'Do it.'): Record<string, string> {
  return { 'SKILL.md': `---\nname: ${name}\ndescription: about ${name}\n---\n${text}` };
}

function calls(args: unknown) {
  return { calls: [{ name: 'load_skill', args: JSON.stringify(args) }] };
}

/** The results of all calls so far. */
async function results({ troupe }: Company): Promise<[outcome: string, content: string][]> {
  const { events } = await troupe.events(ROOM);
  return events.flatMap(({ kind, body }) => (kind === 'tool.result' ? [[body.outcome, body.content]] : []));
}

async function load(dir: string, args: unknown): Promise<[outcome: string, content: string]> {
  await using room = await company(['p'], {
    definition: { skills: [dir] },
    answers: { p: [calls(args), 'done'] },
  });
  await room.say(UMA, 'p', 'go');
  return (await results(room))[0] ?? ['none', ''];
}

test('a prompt lists names and descriptions, and the agent loads what it needs', async () => {
  const dir = skills({
    release: { 'SKILL.md': RELEASE, 'checklist.md': '- tests are green', 'scripts/tag.sh': 'git tag' },
    notes: { 'readme.txt': 'no skill' },
  });
  await using room = await company(['p'], {
    definition: { skills: [dir] },
    answers: { p: [calls({ name: 'release' }), calls({ name: 'release', file: 'checklist.md' }), 'done'] },
  });
  await room.say(UMA, 'p', 'release it');
  expect(room.system('p')).toMatch(
    /# Skills\n[^\n]*load_skill[^\n]*\n- release: How a version is released\.$/,
  );
  expect(room.system('p')).not.toContain('Releasing');
  expect(await results(room)).toEqual([
    [
      'done',
      '# Releasing\n1. Read checklist.md.\n\n[files of this skill, read with load_skill and file:\n- checklist.md\n- scripts/tag.sh]',
    ],
    ['done', '- tests are green'],
  ]);
});

test('an agent has the common skills and its own, which replace others of the same name', async () => {
  const common = skills({ a: skill('plan', 'Common.'), b: skill('ship') });
  const own = skills({ c: skill('plan', 'Own.') });
  await using room = await company(['p', 'q'], {
    definition: { skills: [common] },
    agents: { q: { skills: [own] } },
    answers: { q: [calls({ name: 'plan' }), 'done'] },
  });
  await room.say(UMA, ['p', 'q'], 'go');
  for (const agent of ['p', 'q'])
    expect(room.system(agent).match(/^- (?:plan|ship): .*$/gm)).toEqual([
      '- plan: about plan',
      '- ship: about ship',
    ]);
  expect(await results(room)).toEqual([['done', 'Own.']]);
});

test('an agent without skills has no word of them, and no tool', async () => {
  await using room = await company(['p']);
  await room.say(UMA, 'p', 'hi');
  expect(JSON.stringify(room.requests('p')[0]?.body)).not.toMatch(/skill/i);
});

test('what is not there, too long or outside of the skill is refused in words that the model can use', async () => {
  const dir = skills({
    plan: { ...skill('plan'), 'big.txt': 'x'.repeat(65_537), 'image.bin': Buffer.from([0xff, 0xfe, 0xff]) },
    other: { ...skill('other'), 'secret.txt': 'hush' },
  });
  symlinkSync(path.join(dir, 'other'), path.join(dir, 'plan', 'link'));
  const refused = async (args: unknown, words: string) =>
    expect(await load(dir, args)).toEqual(['failed', expect.stringContaining(words)]);
  await refused({ name: 'plam' }, 'there is no skill "plam". Skills: other, plan');
  await refused({ name: 'plan', file: 'no.txt' }, 'has no file "no.txt". Files: big.txt, image.bin');
  await refused({ name: 'plan', file: 'big.txt' }, 'larger than 65536 bytes');
  await refused({ name: 'plan', file: 'image.bin' }, 'is not UTF-8');
  await refused({ name: 'plan', file: '../other/secret.txt' }, 'outside of its directory');
  await refused({ name: 'plan', file: 'link/secret.txt' }, 'leads out of its directory');
  await refused({ name: 'plan', file: '/etc/passwd' }, 'outside of its directory');
});

test('a skill is read when it is loaded, so a changed one needs no restart', async () => {
  const dir = skills({ plan: skill('plan', 'Old.') });
  await using room = await company(['p'], {
    definition: { skills: [dir] },
    answers: { p: [calls({ name: 'plan' }), 'done'] },
  });
  writeFileSync(path.join(dir, 'plan', 'SKILL.md'), skill('plan', 'New.')['SKILL.md'] ?? '');
  await room.say(UMA, 'p', 'go');
  expect(await results(room)).toEqual([['done', 'New.']]);
});

test('the list stays short, however many skills there are and however long they describe themselves', async () => {
  const many = Object.fromEntries(
    Array.from({ length: 100 }, (_, n) => {
      const text = `---\nname: skill-${n}\ndescription: ${`${n} `.repeat(300)}\n---\nDo it.`;
      return [`skill-${n}`, { 'SKILL.md': text }];
    }),
  );
  await using room = await company(['p'], { definition: { skills: [skills(many)] } });
  await room.say(UMA, 'p', 'hi');
  const lines = room.system('p').match(/^- skill-\d+: .*$/gm) ?? [];
  expect(lines).toHaveLength(100);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(200);
  expect(lines).toContain(`- skill-7: ${'7 '.repeat(79)}…`);
});

test('a changed list is told in the next turn, costs no cache, and holds for what can be loaded', async () => {
  const dir = skills({ plan: skill('plan'), old: skill('old') });
  await using room = await company(['p'], {
    definition: { skills: [dir] },
    answers: { p: ['1', '2', calls({ name: 'ship' }), calls({ name: 'old' }), 'done', 'last'] },
  });
  await room.say(UMA, 'p', 'one');
  await room.say(UMA, 'p', 'two');
  const before = room.raw('p');
  mkdirSync(path.join(dir, 'ship'));
  writeFileSync(path.join(dir, 'ship', 'SKILL.md'), skill('ship', 'Ship it.')['SKILL.md'] ?? '');
  rmSync(path.join(dir, 'old'), { recursive: true });
  await room.say(UMA, 'p', 'three');
  const after = room.raw('p', 3);
  expect(after.slice(0, before.length)).toEqual(before);
  expect(room.system('p', 3)).toBe(room.system('p', 1));
  expect(after.at(-1)?.content).toMatch(
    /^roster: .*\n[^]*# Skills\n.*\n *- plan: about plan\n *- ship: about ship$/m,
  );
  expect(await results(room)).toEqual([
    ['done', 'Ship it.'],
    ['failed', expect.stringContaining('there is no skill "old". Skills: plan, ship')],
  ]);
  await room.say(UMA, 'p', 'four');
  expect(room.raw('p').at(-1)?.content).not.toContain('# Skills');
  for (const turn of [1, 2, 3, 4])
    expect(await room.troupe.promptOf(`room:p:${turn}`)).toMatchObject({ verified: true });
});

test('a list that can no longer be read stays, with one warning each time it breaks', async () => {
  const dir = skills({ plan: skill('plan') });
  const warned: string[] = [];
  await using room = await company(['p', 'q'], {
    definition: { skills: [dir] },
    onWarning: (error, where) => void warned.push(`${where}: ${String(error)}`),
  });
  mkdirSync(path.join(dir, 'bad'));
  for (const text of ['no frontmatter', '---\nno end']) {
    writeFileSync(path.join(dir, 'bad', 'SKILL.md'), text);
    await room.say(UMA, ['p', 'q'], 'go');
    await room.say(UMA, ['p', 'q'], 'go on');
  }
  expect(room.system('p')).toMatch(/- plan: about plan$/);
  expect(room.raw('p').some(({ content }) => content?.includes('# Skills'))).toBe(false);
  expect(warned.filter((line) => line.startsWith('skills'))).toEqual(
    [1, 2].map(() =>
      expect.stringMatching(/bad: SKILL\.md does not begin .*; the list read before it stays$/),
    ),
  );
});

test.each([
  ['no frontmatter', 'Do it.', 'SKILL.md does not begin with a frontmatter'],
  ['an open frontmatter', '---\nname: plan', 'SKILL.md does not begin with a frontmatter'],
  ['no description', '---\nname: plan\n---\nDo it.', 'SKILL.md has no valid description'],
  ['a name with blanks', '---\nname: My plan\ndescription: d\n---\n', 'SKILL.md has no valid name'],
  ['invalid YAML', '---\nname: [\n---\n', 'SKILL.md has no valid frontmatter'],
  ['aliases', '---\na: &a x\nname: *a\ndescription: d\n---\n', 'SKILL.md has no valid frontmatter'],
])('%s is a configuration error that names the file', async (_, text, words) => {
  const dir = skills({ plan: { 'SKILL.md': text } });
  const opened = openTroupe({ agents: [scripted('p')], skills: [dir] });
  await expect(opened).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining(`skills: ${path.join(dir, 'plan')}: ${words}`),
  });
});

test('a missing directory and one without skills are configuration errors, all at once', async () => {
  const empty = skills({ notes: { 'readme.txt': 'x' } });
  const agents = [{ ...scripted('p'), skills: ['/nowhere/at/all'] }];
  await expect(openTroupe({ agents, skills: [empty] })).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringMatching(
      /^2 problem\(s\) with skills:\n {2}skills: .* has no folder with a SKILL\.md\n {2}skills of @p: there is no directory \/nowhere/,
    ),
  });
});

test('paths in an agents file are relative to it', async () => {
  const dir = skills({ 'skills/plan': skill('plan') });
  const file = path.join(dir, 'agents.json');
  writeFileSync(
    file,
    JSON.stringify({
      skills: ['skills'],
      agents: [{ ...scripted('p'), skills: ['mine'] }],
    }),
  );
  const { skills: common, agents } = await loadAgentsFile(file);
  expect([common, agents[0]?.skills]).toEqual([[path.join(dir, 'skills')], [path.join(dir, 'mine')]]);
});

test('a tool of the application may not take its name', async () => {
  const tools = [{ name: 'load_skill', schema: {}, run: () => '' } as never];
  await expect(openTroupe({ agents: [scripted('p')], tools })).rejects.toMatchObject({
    code: 'config_invalid',
  });
});
