import type { Page } from 'playwright-core';
import * as z from 'zod';
import { defineTool } from '../../src/tools/tool.ts';
import { BEN, type PageStage, type Play } from './stage.ts';

const AGENTS = ['a0', 'a1', 'a2', 'a3', 'a4', 'a5'];

/** Agents who each ask for approval when they are spoken to. */
export const ASKERS: Play = {
  company: (baseUrl) => ({
    agents: AGENTS.map((id) => ({
      id,
      provider: 'openai-compatible' as const,
      baseUrl,
      apiKeyEnv: 'KEY',
      model: id,
      tools: ['pay'],
    })),
    tools: [
      defineTool({
        name: 'pay',
        description: 'Pays a bill.',
        schema: z.object({ to: z.string() }),
        needsApproval: true,
        run: ({ to }) => `${to} is paid.`,
      }),
    ],
  }),
  lines: AGENTS.flatMap((agent) => [
    { agent, hears: 'the bill', says: { calls: [{ name: 'pay', args: `{"to":"${agent}"}` }] } },
    { agent, hears: /./, says: { text: 'Good.' } },
  ]),
};

interface Options {
  clicks: number;
  seed: number;
  /** The conversation in which an agent asks. */
  placeOf: (agent: string) => string;
}

export interface RapidResult {
  clicks: number;
  /** Decisions that the page sent. */
  sent: { request: string; aimed: string }[];
  /** The requests that were approved, from the log: by the page, since others only deny. */
  decided: string[];
}

/** Where an Approve is, and which one: what a person sees who aims. The same approval may be aimed at again and again. */
const AIM = `(at) => {
  const buttons = [...document.querySelectorAll('[data-request] .button-run')].filter((each) => {
    const { top, bottom } = each.getBoundingClientRect();
    return top > 0 && bottom < innerHeight;
  });
  const button = buttons[Math.floor(at * buttons.length)];
  if (!button) return null;
  const { left, top, width, height } = button.getBoundingClientRect();
  const [x, y] = [left + width / 2, top + height / 2];
  const request = document.elementFromPoint(x, y)?.closest('[data-request]')?.dataset.request;
  return request === undefined ? null : { x, y, request };
}`;

/** Clicks on whatever Approve was aimed at, while approvals come and others decide them. */
export async function clickRapidly(page: Page, stage: PageStage, options: Options): Promise<RapidResult> {
  const random = mulberry32(options.seed);
  const rooms = [...new Set(AGENTS.map(options.placeOf))];
  const sent: RapidResult['sent'] = [];
  let aimed = '';
  page.on('request', (asked) => {
    if (!asked.url().endsWith('/api/commands')) return;
    const { request } = asked.postDataJSON() as { request: string };
    sent.push({ request, aimed });
  });

  /** An agent without an open request asks for one, or somebody else decides one. */
  async function disturb(): Promise<void> {
    const agent = AGENTS[Math.floor(random() * AGENTS.length)] ?? 'a0';
    const room = options.placeOf(agent);
    const { tasks } = await stage.troupe.tasks(room, { open: true }).catch(() => ({ tasks: [] }));
    const open = tasks.find((task) => task.kind === 'approval' && task.owner === agent);
    if (!open) return void (await stage.say(room, [agent], 'Pay the bill.'));
    const command = { command: 'decide', conversation: room, request: open.id, approved: false };
    // The page may have been faster.
    await stage.troupe.command(command as never, BEN).catch(() => {});
  }

  for (const agent of AGENTS) await stage.say(options.placeOf(agent), [agent], 'Pay the bill.');
  await stage.troupe.idle();
  let clicks = 0;
  while (clicks < options.clicks) {
    const aim = await page.evaluate<{ x: number; y: number; request: string } | null>(
      `(${AIM})(${random()})`,
    );
    if (!aim) {
      await disturb();
      continue;
    }
    if (random() < 0.3) await page.waitForTimeout(random() * 700);
    const before = page.evaluate<{ request: string } | null>(`(() => {
      const at = document.elementFromPoint(${aim.x}, ${aim.y})?.closest('[data-request]');
      return at ? { request: at.dataset.request } : null;
    })()`);
    aimed = (await before)?.request ?? aim.request;
    const disturbed = random() < 0.5 ? disturb() : Promise.resolve();
    if (random() < 0.5) await disturbed;
    if (random() < 0.5) await page.waitForTimeout(random() * 150);
    await page.mouse.click(aim.x, aim.y);
    await disturbed;
    clicks += 1;
  }
  await stage.troupe.idle();
  const events = (await Promise.all(rooms.map((room) => stage.events(room)))).flat();
  // Others only deny.
  const decided = events.flatMap((event) =>
    event.kind === 'approval.decided' && event.body.outcome === 'approved' ? [event.body.request] : [],
  );
  return { clicks, sent, decided };
}

/** A small seeded generator. */
function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
