import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { loadAgentsFile } from '../../src/library/config/load-agents-file.ts';
import { company, UMA } from '../support/company.ts';
import { openTroupe } from '../support/mode.ts';
import { scripted } from './stage.ts';

const made: string[] = [];
afterAll(() => made.forEach((dir) => rmSync(dir, { recursive: true, force: true })));

/** A new directory with these files. */
function directory(files: Record<string, string | Buffer> = {}): string {
  const dir = mkdtempSync(join(tmpdir(), 'workspace-'));
  made.push(dir);
  for (const [name, content] of Object.entries(files)) writeFileSync(join(dir, name), content);
  return dir;
}

test('instruction files are sent in their layers: common ones to everybody, an own persona in their place', async () => {
  const common = directory({
    'AGENTS.md': 'Never touch prod.\n',
    'SOUL.md': 'Kind.',
    'IDENTITY.md': 'Called Atlas.',
    'README.md': 'For people.',
  });
  const own = directory({ 'SOUL.md': 'Gruff.', 'AGENTS.md': 'Use tabs.' });
  await using room = await company(['a', 'b'], {
    definition: { workspace: common },
    agents: { a: { instructions: 'Plan.' }, b: { workspace: own } },
  });
  await room.say(UMA, 'a', 'hi');
  await room.say(UMA, 'b', 'hi');
  expect(room.system('a')).toMatch(
    /\n\n# AGENTS\.md\nNever touch prod\.\n\n# You are a [^]*\nPlan\.\n\n# IDENTITY\.md\nCalled Atlas\.\n\n# SOUL\.md\nKind\.\n\n# Agents here/,
  );
  expect(room.system('b')).toMatch(
    /# AGENTS\.md\nNever touch prod\.\n\n# AGENTS\.md \(yours\)\nUse tabs\.\n\n# You are b [^]*# IDENTITY\.md\nCalled Atlas\.\n\n# SOUL\.md\nGruff\.\n\n# Agents here/,
  );
  for (const agent of ['a', 'b']) expect(room.system(agent)).not.toMatch(/For people|workspace-/);
});

test('a changed file begins an epoch at the next turn and is its cause; an unchanged one does not', async () => {
  const dir = directory({ 'AGENTS.md': 'One.', 'SOUL.md': 'Kind.' });
  await using room = await company(['a'], { definition: { workspace: dir } });
  await room.say(UMA, 'a', '1');
  await room.say(UMA, 'a', '2');
  writeFileSync(join(dir, 'AGENTS.md'), 'Two.');
  const preview = await room.troupe.prompt('room', 'a');
  await room.say(UMA, 'a', '3');
  rmSync(join(dir, 'SOUL.md'));
  await room.say(UMA, 'a', '4');
  const { events } = await room.troupe.events('room');
  const reasons = events.flatMap((event) => (event.kind === 'baseline' ? [event.body.reason] : []));
  expect(reasons).toEqual(['first turn', 'rules (AGENTS.md) changed', 'persona (SOUL.md) changed']);
  expect(room.system('a', 2)).toBe(room.system('a', 1));
  expect(room.system('a', 3)).toBe(room.system('a', 1).replace('One.', 'Two.'));
  expect(preview.messages[0]?.content).toBe(room.system('a', 3));
  expect(room.system('a', 4)).not.toContain('SOUL.md');
  for (const turn of [1, 2, 3, 4])
    expect(await room.troupe.promptOf(`room:a:${turn}`)).toMatchObject({ verified: true });
});

test('a file that can no longer be read keeps its last text, with one warning', async () => {
  const dir = directory({ 'AGENTS.md': 'One.' });
  const warned: string[] = [];
  await using room = await company(['a'], {
    definition: { workspace: dir },
    onWarning: (error, where) => void warned.push(`${where}: ${String(error)}`),
  });
  writeFileSync(join(dir, 'AGENTS.md'), 'x'.repeat(65_537));
  await room.say(UMA, 'a', '1');
  await room.say(UMA, 'a', '2');
  expect(room.system('a')).toContain('# AGENTS.md\nOne.');
  expect(warned.filter((line) => line.startsWith('workspace'))).toEqual([
    'workspace: AGENTS.md is larger than 65536 bytes; the text read before it stays',
  ]);
});

test('chat mode leaves the files of the persona out', async () => {
  const dir = directory({ 'AGENTS.md': 'One.', 'SOUL.md': 'Kind.' });
  await using room = await company(['a'], { definition: { workspace: dir } });
  await room.say(UMA, 'a', '1');
  await room.troupe.command({ command: 'mode', conversation: 'room' as never, mode: 'chat' }, UMA);
  await room.say(UMA, 'a', '2');
  expect(room.system('a')).toContain('One.');
  expect(room.system('a')).not.toContain('Kind.');
});

test('what leads out of the directory, is too large or is no text is refused at the start, each by name', async () => {
  const secret = join(directory({ secret: 'secret' }), 'secret');
  const linked = directory();
  symlinkSync(secret, join(linked, 'AGENTS.md'));
  mkdirSync(join(linked, 'SOUL.md'));
  writeFileSync(join(linked, 'IDENTITY.md'), Buffer.from([0xff, 0xfe, 0x00]));
  const opened = openTroupe({
    workspace: linked,
    agents: [
      scripted('a', { workspace: join(linked, 'gone') }),
      scripted('b', { workspace: directory() }),
      scripted('c', { workspace: directory({ 'SOUL.md': 'é'.repeat(32_769) }) }),
    ],
  });
  const error = await opened.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toMatchObject({ code: 'config_invalid' });
  expect((error as { data: { problems: string[] } }).data.problems).toEqual([
    'workspace: AGENTS.md is a link that leads out of its directory',
    'workspace: IDENTITY.md is not UTF-8',
    'workspace: SOUL.md is no file',
    expect.stringMatching(/^workspace of @a: there is no directory .*gone$/),
    expect.stringMatching(/^workspace of @b: .* has none of AGENTS\.md, IDENTITY\.md, SOUL\.md$/),
    'workspace of @c: SOUL.md is larger than 65536 bytes',
  ]);
});

test('a workspace is relative to the agents file, and nothing is read without one', async () => {
  const dir = directory({ 'AGENTS.md': 'One.' });
  const file = join(dir, 'agents.json');
  const agents = [scripted('a'), scripted('b', { workspace: 'of-b' })];
  writeFileSync(file, JSON.stringify({ agents, workspace: './' }));
  const definition = await loadAgentsFile(file);
  expect([definition.workspace, definition.agents[1]?.workspace]).toEqual([dir, join(dir, 'of-b')]);
  await using room = await company(['a']);
  await room.say(UMA, 'a', 'hi');
  expect(room.system('a')).not.toContain('AGENTS.md');
});
