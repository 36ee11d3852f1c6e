import * as z from 'zod';
import { defineTool } from '../../src/tools/tool.ts';
import type { PageStage, Play } from './stage.ts';

/** Texts that run, load or open something if they are treated as markup. */
export const MARKUP = `<img src=x onerror="window.__xss=1"><script>window.__xss=2</script>`;
export const LINK = `javascript:window.__xss=3`;
/** As hostile as the pattern of ids allows. */
export const HOSTILE_ID = 'x:..:constructor.__proto__@a';

const BREAKOUT = `"'></title></script><svg onload=window.__xss=4>`;
const RIGHT_TO_LEFT = '\u202Egnp.exe';

/** An agent whose every text is hostile. */
export const HOSTILE: Play = {
  company: (baseUrl) => ({
    agents: [
      {
        id: 'constructor',
        name: `Mallory ${MARKUP}`,
        description: `${BREAKOUT} ${MARKUP}`,
        instructions: MARKUP,
        tools: ['fetch_page'],
        provider: 'openai-compatible',
        model: 'mallory',
        baseUrl,
        apiKeyEnv: 'KEY',
        contextWindow: 32_000,
      },
    ],
    tools: [
      defineTool({
        name: 'fetch_page',
        description: `Fetches. ${MARKUP}`,
        schema: z.object({ url: z.string() }),
        run: () => `<html>${MARKUP}${BREAKOUT} ${LINK}</html>`,
      }),
    ],
  }),
  lines: [
    {
      agent: 'mallory',
      hears: 'Read the page',
      says: {
        text: MARKUP,
        calls: [{ name: 'fetch_page', args: JSON.stringify({ url: `${LINK}${MARKUP}` }) }],
      },
      times: 1,
    },
    { agent: 'mallory', hears: '<html>', says: { text: `Done: ${MARKUP} ${BREAKOUT} [click](${LINK})` } },
    {
      agent: 'mallory',
      hears: 'fail now',
      says: { error: { code: 'provider_auth', message: `no: ${MARKUP}` } },
    },
  ],
};

export async function playHostile(stage: PageStage): Promise<void> {
  const author = { kind: 'user', id: 'eve', name: `Eve ${MARKUP}` } as const;
  await stage.play(HOSTILE_ID, ['constructor'], `Read the page. ${MARKUP} ${LINK}`, {
    author,
    attachments: [
      {
        name: `notes${RIGHT_TO_LEFT}<b onclick=1>.txt`,
        mediaType: 'text/plain',
        data: Buffer.from(`${MARKUP}${BREAKOUT}`),
      },
    ],
  });
  await stage.play(HOSTILE_ID, ['constructor'], `Please fail now. ${BREAKOUT}`, { author });
}
