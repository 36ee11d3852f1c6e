import { expect } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/tools/tool.ts';
import { pageTest, useBrowser } from './browser.ts';
import { openStage, type Play } from './stage.ts';

const browsing = useBrowser();

function play(open: Promise<void>): Play {
  const copy = defineTool({
    name: 'copy',
    description: '',
    schema: z.object({ from: z.string() }),
    async run(_, { progress }) {
      progress({ text: 'copying', done: 1, total: 3 });
      await open;
      return 'copied';
    },
  });
  const look = defineTool({ name: 'look', description: '', schema: z.object({}), run: () => 'a drawer' });
  return {
    company: (url) => ({
      agents: [
        {
          id: 'bo',
          name: 'Boris Ω',
          provider: 'openai-compatible',
          baseUrl: url,
          apiKeyEnv: 'KEY',
          model: 'bo',
          tools: ['copy', 'look'],
        },
      ],
      tools: [copy, look],
    }),
    lines: [
      {
        agent: 'bo',
        hears: 'go',
        says: {
          calls: [
            { name: 'copy', args: '{"from":"attic"}' },
            { name: 'look', args: '{}' },
          ],
        },
      },
      { agent: 'bo', hears: /./, says: { text: 'All done.' } },
    ],
  };
}

pageTest(
  'a running call is shown with arguments, progress and result, until its events replace it',
  async () => {
    const open = Promise.withResolvers<void>();
    await using stage = await openStage(play(open.promise));
    await stage.say('c', ['bo'], 'go');
    // The page comes while the call runs, and comes again.
    for (const path of ['c/c', 'c/c']) {
      const page = await browsing.open(stage.url + path);
      const running = page.getByRole('list', { name: 'Tool calls so far' });
      await running.getByText('{"from":"attic"}').waitFor();
      await running.getByText('running: 1 of 3, copying').waitFor();
      await running.getByText('a drawer').waitFor();
      expect(await running.getByRole('progressbar').getAttribute('max')).toBe('3');
      await page.close();
    }
    const page = await browsing.open(`${stage.url}c/c`);
    const running = page.getByRole('list', { name: 'Tool calls so far' });
    await running.waitFor();
    open.resolve();
    await running.waitFor({ state: 'detached' });
    await page.getByText('All done.').first().waitFor();
    // It still reads the agents' states, and the server is about to close.
    await page.close();
  },
);

pageTest(
  'a message to an agent at work says that it is not read yet, and then before which step it was',
  async () => {
    const open = Promise.withResolvers<void>();
    await using stage = await openStage(play(open.promise));
    await stage.say('c', ['bo'], 'go');
    const page = await browsing.open(`${stage.url}c/c`);
    await page.getByText('running: 1 of 3, copying').waitFor();
    await stage.say('c', ['bo'], 'Be quick, please.', { whileBusy: 'steer' });
    const message = page.getByRole('article', { name: 'Ana says' }).filter({ hasText: 'Be quick' });
    await message.getByText('Boris Ω has not read it yet').waitFor();
    open.resolve();
    await message.getByText('Boris Ω has read it before step 2').waitFor();
    expect(await message.innerText()).not.toContain('not read');
    // Before its server ends, which the page would ask again.
    await page.close();
  },
);
