import type { Page } from 'playwright-core';
import {
  abortAll,
  isSpeaking,
  playApproval,
  playCompacted,
  playFailed,
  playIdle,
  playQuestion,
} from './fixtures.ts';
import { ANA, type PageStage } from './stage.ts';

/** Ten views that together show every part of the page, for screenshots and axe. */
export interface View {
  name: string;
  path: string;
  /** Visible once the view is drawn. */
  shows: RegExp;
  /** Runs once the page is open. */
  begin?: (stage: PageStage) => Promise<void>;
}

const LAUNCH = 'acme-launch';
const LEDGERS = 'harbour-ledgers';
const MAY = 'crates-of-may';

export const VIEWS: readonly View[] = [
  { name: 'conversations', path: '', shows: /acme-launch/ },
  { name: 'live', path: `c/${LAUNCH}?agent=researcher`, shows: /streaming[^]*High water/, begin: speak },
  { name: 'failed', path: `c/${MAY}?agent=writer`, shows: /provider_quota/ },
  { name: 'prompt', path: `c/${MAY}/t/${MAY}:researcher:2?tab=prompt`, shows: /\+4,\d{3}/ },
  { name: 'cache-break', path: `c/${LEDGERS}/t/${LEDGERS}:archivist:2?tab=prompt`, shows: /Cache broke/ },
  { name: 'diff', path: `c/${MAY}/t/${MAY}:researcher:2?tab=diff`, shows: /tokens, ~/ },
  { name: 'tools', path: `c/${MAY}/t/${MAY}:researcher:2?tab=tools`, shows: /crates-of-may/ },
  {
    name: 'events',
    path: `c/${MAY}/t/${MAY}:researcher:2?list=events&kind=*&event=9&tab=raw`,
    shows: /tool\.result/,
  },
  { name: 'compaction', path: `c/${LEDGERS}?kind=context`, shows: /made room/ },
  { name: 'past', path: `c/${MAY}?at=12&agent=researcher`, shows: /The past\./ },
];

/** Plays the conversations of `VIEWS`. */
export async function playViews(stage: PageStage): Promise<void> {
  await playCompacted(stage, LEDGERS);
  await playIdle(stage, 'tariff-plan');
  await playApproval(stage, 'headline');
  await playFailed(stage, MAY);
  await playIdle(stage, LAUNCH);
  await playQuestion(stage, LAUNCH);
}

/** Resolves once the page is live or shows the past. */
export async function isOpen(page: Page): Promise<void> {
  await page
    .getByRole('banner')
    .getByText(/^(Live|Past)/)
    .waitFor();
}

/** The researcher streams the beginning of a reply and hangs. */
async function speak(stage: PageStage): Promise<void> {
  await endViews(stage);
  await stage.say(LAUNCH, ['researcher'], 'What do the tide tables say for the week?', { author: ANA });
  await isSpeaking(stage, LAUNCH, 'researcher');
}

export async function endViews(stage: PageStage): Promise<void> {
  await abortAll(stage, LAUNCH);
}
