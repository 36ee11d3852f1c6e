import type { Page } from 'playwright-core';
import { CROWD, playCrowd } from './crowd.ts';
import { isSpeaking } from './fixtures.ts';
import { OFFICE, STREAMED } from './office.ts';
import { ANA, BEN, openStage, type PageStage, type Play, type StageOptions } from './stage.ts';
import { playSurvey, SURVEY } from './survey.ts';
import { endViews, playViews, VIEWS, type View } from './views.ts';
import { hanging } from './vendor.ts';

/** A view that needs more than an address. */
export interface Picture extends View {
  /** Runs before the page is opened, to hold or refuse requests. */
  before?: (page: Page) => Promise<unknown>;
  /** Runs once the page shows `shows`, such as a click. */
  act?: (page: Page) => Promise<void>;
  /** False if the page never gets to be live. */
  isLive?: boolean;
}

/** A stage with its views, opened only for views that are asked for. */
export interface Scene {
  views: readonly Picture[];
  open(): Promise<PageStage>;
}

const MAY = 'crates-of-may';

const OFFICE_VIEWS: readonly Picture[] = [
  ...VIEWS,
  { name: 'inbox-asks', path: '?state=asks', shows: /headline/ },
  { name: 'inbox-nothing', path: '?q=zebra', shows: /No conversation matches/ },
  { name: 'reading', path: 'c/tariff-plan', shows: /hands over to/ },
  { name: 'approval', path: 'c/headline', shows: /publish[^]*Approve/ },
  { name: 'turns', path: `c/${MAY}?list=turns`, shows: /read_report/ },
  { name: 'costliest', path: `c/${MAY}?list=turns&sort=-cost`, shows: /read_report/ },
  { name: 'graph', path: 'c/tariff-plan?list=graph', shows: /Graph as a table/ },
  { name: 'state', path: `c/tariff-plan/t/tariff-plan:researcher:1`, shows: /took 4 %/ },
  {
    name: 'chart',
    path: `c/tariff-plan?agent=researcher`,
    shows: /Statechart/,
    act: (page) => page.getByRole('button', { name: 'Statechart' }).click(),
  },
  { name: 'routes', path: 'routes', shows: /GET \/api\/inbox/ },
  { name: 'no-page', path: 'nowhere', shows: /no such page/ },
  {
    name: 'compare',
    path: `c/tariff-plan/t/tariff-plan:critic:1`,
    shows: /when it begins/,
    act: async (page) => {
      await page.getByRole('button', { name: 'Run again…' }).click();
      const asked = page.getByRole('dialog');
      await asked.getByRole('textbox', { name: 'Message' }).fill('Who must be told of the plan?');
      await asked.getByRole('button', { name: 'Run again' }).click();
      await page.getByRole('main', { name: 'Comparison' }).getByRole('table').waitFor();
    },
  },
  {
    name: 'search',
    path: '',
    shows: /acme-launch/,
    act: async (page) => {
      await page.getByRole('searchbox', { name: 'Search all conversations' }).fill('tariff');
      await page.getByText(/\d hits in/).waitFor();
    },
  },
  {
    name: 'palette',
    path: `c/${MAY}`,
    shows: /crates/,
    act: async (page) => {
      await page.keyboard.press('Control+k');
      await page.getByRole('dialog').waitFor();
      await page.keyboard.type('re');
    },
  },
  { name: 'help', path: `c/${MAY}`, shows: /crates/, act: (page) => page.keyboard.press('?') },
  { name: 'gone', path: 'c/nowhere', shows: /There is no conversation/, isLive: false },
  {
    name: 'loading',
    path: `c/${MAY}/t/${MAY}:researcher:2?tab=prompt`,
    shows: /Troupe/,
    isLive: false,
    before: (page) => page.route('**/api/**', () => {}),
  },
  {
    name: 'loading-home',
    path: '',
    shows: /Troupe/,
    isLive: false,
    before: (page) => page.route('**/api/**', () => {}),
  },
  {
    name: 'lost',
    path: `c/${MAY}?agent=writer`,
    shows: /Not connected/,
    begin: (stage) => stage.stop(),
  },
];

/** One slot: a conversation holds it with a silent model, others wait. */
const SLOT: Play = {
  company: (url) => ({
    agents: ['planner', 'clerk', 'pilot'].map((id) => ({
      id,
      provider: 'openai-compatible',
      baseUrl: url,
      apiKeyEnv: 'KEY',
      model: id,
    })),
    limits: { providers: { 'openai-compatible': { turns: 1 } } },
  }),
  lines: [{ agent: 'planner', hears: /./, says: () => hanging(STREAMED) }],
};

const SLOT_VIEWS: readonly Picture[] = [
  { name: 'stuck', path: '', shows: /Stuck now/ },
  {
    name: 'queue',
    path: '',
    shows: /queue 3/,
    act: (page) => page.getByRole('button', { name: /queue 3/ }).click(),
  },
  { name: 'queued', path: 'c/berths?agent=clerk', shows: /waits for a slot/ },
];

async function openSlot(): Promise<PageStage> {
  const stage = await openStage(SLOT);
  await stage.say('tides', ['planner'], 'What do the tide tables say for the week?');
  await isSpeaking(stage, 'tides', 'planner');
  await stage.say('berths', ['clerk'], 'Which berths are free on Monday?');
  await stage.say('receipts', ['clerk'], 'Where are the receipts of April?', { author: BEN });
  await stage.say('pilots', ['pilot'], 'Who brings the Aurora in?', { author: ANA });
  stage.clock.pass(260_000);
  return stage;
}

const SURVEY_VIEWS: readonly Picture[] = [
  { name: 'tree', path: 'c/plots?list=tree', shows: /gives/ },
  { name: 'delegation', path: 'c/plots', shows: /gives/ },
  {
    name: 'waterfall',
    path: 'c/plots?list=turns',
    shows: /lead/,
    before: (page) => page.addInitScript("localStorage.setItem('troupe-top', '480')"),
    act: openLanes,
  },
  { name: 'right-to-left', path: 'c/shalom', shows: /המגרש/ },
];

async function openLanes(page: Page): Promise<void> {
  for (const lane of await page.locator('.timeline-open').all()) await lane.click();
}

/** Every view of the page, by the stage that it is on. */
/** Views of the world of `npm run world`: thousands of conversations, failures, waits, a long log. */
export const WORLD_VIEWS: readonly Picture[] = [
  { name: 'world-home', path: '', shows: /21 × provider_auth/ },
  { name: 'world-asks', path: '?state=asks', shows: /letter-3/ },
  { name: 'world-costliest', path: '?order=costliest', shows: /archive/ },
  { name: 'world-search', path: '?find=customs+form', shows: /hits? in/ },
  { name: 'world-costs', path: 'costs?since=week', shows: /Archivist/ },
  { name: 'world-long', path: 'c/archive', shows: /Indexed/ },
  { name: 'world-long-turns', path: 'c/archive?list=turns', shows: /made room/ },
  { name: 'world-long-events', path: 'c/archive?list=events&kind=*', shows: /11626|11,626/ },
  {
    name: 'world-long-prompt',
    path: 'c/archive/t/archive:archivist:2555?tab=prompt',
    shows: /Cache broke/,
  },
  { name: 'world-long-diff', path: 'c/archive/t/archive:archivist:12?tab=diff', shows: /tokens, ~/ },
  { name: 'world-stuck', path: 'c/stamp', shows: /waits for Customs/ },
  { name: 'world-failed', path: 'c/bill-0', shows: /Incorrect API key/ },
  { name: 'world-approval', path: 'c/refund-9', shows: /Change the arguments/ },
  { name: 'world-question', path: 'c/letter-3', shows: /Which tone/ },
];

export const SCENES: readonly Scene[] = [
  {
    views: OFFICE_VIEWS,
    open: () => openWith(OFFICE, playViews, endViews),
  },
  {
    views: [{ name: 'crowd', path: 'c/crowd', shows: /Agent 37/ }],
    open: () => openWith(CROWD, (stage) => playCrowd(stage, 'crowd')),
  },
  { views: SLOT_VIEWS, open: openSlot },
  { views: SURVEY_VIEWS, open: () => openWith(SURVEY, playSurvey) },
  { views: [{ name: 'empty', path: '', shows: /No conversations yet/ }], open: () => openStage(OFFICE) },
  {
    views: [{ name: 'token', path: '', shows: /requires a token/, isLive: false }],
    open: () => openStage(OFFICE, { app: { token: 'of-this-server', keyless: 'refused' } }),
  },
];

async function openWith(
  play: Play,
  begin: (stage: PageStage) => Promise<void>,
  end?: (stage: PageStage) => Promise<void>,
  options?: StageOptions,
): Promise<PageStage> {
  const stage = await openStage(play, options);
  await begin(stage);
  if (!end) return stage;
  const dispose = stage[Symbol.asyncDispose];
  return Object.assign(stage, {
    async [Symbol.asyncDispose]() {
      await end(stage);
      await dispose();
    },
  });
}
