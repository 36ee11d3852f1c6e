import { join } from 'node:path';
import fc from 'fast-check';
import { expect } from 'vitest';
import { TroupeError } from '../../src/errors.ts';
import { caller, mcpRoom, stdioStage } from '../tools/mcp-stage.ts';
import { attack } from './attack.ts';

const SCRIPT = join(import.meta.dirname, '../support/hostile-mcp-server.ts');
const hostile = (manner: string, timeoutMs = 30_000) => ({
  command: process.execPath,
  args: [SCRIPT, manner],
  timeoutMs,
});

/** Refusals at the start, with their messages. */
const LISTS: Readonly<Record<string, string>> = {
  deep: 'mcpServers.evil cannot be started: its tool "abyss" has a schema of more than 64 levels',
  many: 'mcpServers.evil cannot be started: its list has more than 1000 tools',
  'long name': 'characters; the limit is 256',
  'long description': 'mcpServers.evil: its tool "novel" has a description of 1000000 characters',
  'wide schema': 'mcpServers.evil: its tool "wide" has a schema of',
  twins: 'evil/twin and evil/twin would both be called "evil__twin"',
  pages: 'mcpServers.evil cannot be started: its list of tools has more than 100 pages',
};

attack(38, 'an MCP server whose tools are too deep, too many or too long', async (refused) => {
  const agents = [caller('ana', ['evil/*'], {})];
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...Object.keys(LISTS)), async (manner) => {
      const opened: unknown = await mcpRoom({ agents, mcpServers: { evil: hostile(manner) } }).catch(
        (thrown: unknown) => thrown,
      );
      expect(opened).toBeInstanceOf(TroupeError);
      const { code, message } = opened as TroupeError;
      expect(code).toBe('config_invalid');
      expect(message).toContain(LISTS[manner]);
      expect(message.length).toBeLessThan(5_000);
      refused('config_invalid');
    }),
    { numRuns: 7, examples: Object.keys(LISTS).map((manner): [string] => [manner]), endOnFailure: true },
  );
});

/** Outcomes of calls, with the text of their results. */
const CALLS: Readonly<Record<string, { outcome: string; says: string; most?: number }>> = {
  notices: { outcome: 'failed', says: 'more than 2000 messages in a second' },
  progress: { outcome: 'failed', says: 'more than 2000 messages in a second' },
  requests: { outcome: 'failed', says: 'more than 2000 messages in a second' },
  garbage: { outcome: 'failed', says: 'more than 2000 messages in a second' },
  'empty lines': { outcome: 'failed', says: 'more than 2000 messages in a second' },
  answers: { outcome: 'failed', says: 'more than 2000 messages in a second' },
  line: { outcome: 'failed', says: 'maximum size of 10485760 bytes' },
  'some garbage': { outcome: 'done', says: 'still here' },
  parts: { outcome: 'done', says: 'p' },
  'deep result': { outcome: 'failed', says: 'evil__go failed' },
  mute: { outcome: 'failed', says: 'longer than 4000 ms' },
  dies: { outcome: 'failed', says: 'it ended with code 9' },
  changes: { outcome: 'done', says: 'changed' },
};

attack(38, 'an MCP server that answers with too much, nothing or nonsense', async (refused) => {
  const stage = stdioStage();
  const agents = [
    caller('ana', ['evil/*'], { go: ['evil__go'] }),
    caller('bo', ['files/*'], { sum: ['files__add', { a: 1, b: 1 }] }),
  ];
  const files = stage.server();
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...Object.keys(CALLS)), async (manner) => {
      // The limit applies to the start, too, which takes a while on a busy machine.
      const evil = hostile(manner, manner === 'mute' ? 4_000 : 30_000);
      await using room = await mcpRoom({ agents, mcpServers: { evil, files } });
      const wanted = CALLS[manner];
      const result = await room.call('ana', 'go');
      expect(result.outcome).toBe(wanted?.outcome);
      expect(result.content).toContain(wanted?.says);
      expect(result.content.length).toBeLessThan(20_000);
      // The other server and the other agent continue.
      expect(await room.call('bo', 'sum')).toEqual({ outcome: 'done', content: '2' });
      expect(room.warnings.length).toBeLessThan(4);
      const changes = room.warnings.filter((line) => line.includes('its tools have changed'));
      expect(changes).toHaveLength(manner === 'changes' ? 1 : 0);
      refused(`tool.result ${result.outcome}`);
    }),
    { numRuns: 13, examples: Object.keys(CALLS).map((manner): [string] => [manner]), endOnFailure: true },
  );
});
