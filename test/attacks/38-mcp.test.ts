import { join } from 'node:path';
import fc from 'fast-check';
import { expect } from 'vitest';
import { caller, mcpRoom, stdioStage } from '../tools/mcp-stage.ts';
import { attack } from './attack.ts';

const SCRIPT = join(import.meta.dirname, '../support/hostile-mcp-server.ts');
const hostile = (manner: string, timeoutMs = 30_000) => ({
  command: process.execPath,
  args: [SCRIPT, manner],
  timeoutMs,
});

/** What is left out at the start, with the warning. */
const LISTS: Readonly<Record<string, string>> = {
  deep: '"abyss": its schema has more than 64 levels',
  many: 'its list has more than 1000 tools: the first are offered',
  'long name': 'its name has 5000 characters; the limit is 256',
  'long description': '"novel": its description has 1000000 characters',
  'wide schema': '"wide": its schema has',
  twins: '"twin" is listed twice',
  pages: 'its list repeats a cursor: what it lists before is offered',
};

attack(38, 'an MCP server whose tools are too deep, too many or too long', async (refused) => {
  const stage = stdioStage();
  const agents = [
    caller('ana', ['evil/*'], {}),
    caller('bo', ['files/*'], { sum: ['files__add', { a: 1, b: 1 }] }),
  ];
  const files = stage.server();
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...Object.keys(LISTS)), async (manner) => {
      await using room = await mcpRoom({ agents, mcpServers: { evil: hostile(manner), files } });
      expect(room.warnings.join('\n')).toContain(`mcpServers.evil: `);
      expect(room.warnings.join('\n')).toContain(LISTS[manner]);
      expect(room.warnings.join('\n').length).toBeLessThan(5_000);
      expect(await room.call('bo', 'sum')).toEqual({ outcome: 'done', content: '2' });
      refused('a warning with server and tool');
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
  'deep result': { outcome: 'done', says: '[not shown: it has more than 200 levels]' },
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
