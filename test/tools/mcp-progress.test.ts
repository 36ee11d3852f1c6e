import { expect, test } from 'vitest';
import type { ProgressNote } from '../../src/events/index.ts';
import { caller, mcpRoom, stdioStage } from './mcp-stage.ts';

test('what a server tells of the progress of a call is told to watchers', async () => {
  const stage = stdioStage();
  const ana = caller('ana', ['files/steps'], { go: ['files__steps'] });
  await using room = await mcpRoom({ agents: [ana], mcpServers: { files: stage.server() } });
  const heard: ProgressNote[] = [];
  const stop = room.troupe.watch((note) => note.type === 'progress' && heard.push(note));
  expect(await room.call('ana', 'go')).toEqual({ outcome: 'done', content: 'all steps' });
  stop();
  expect(heard).toMatchObject([{ name: 'files__steps', done: 1, total: 3, text: 'first step' }]);
});
