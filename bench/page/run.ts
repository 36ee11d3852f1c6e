import { cpus } from 'node:os';
import { playFailed } from '../../test/page/fixtures.ts';
import { importLongLog } from '../../test/page/long-log.ts';
import { launchChromium } from '../../test/page/browser.ts';
import { OFFICE } from '../../test/page/office.ts';
import { openStage } from '../../test/page/stage.ts';
import { describeChromium, installChromium } from '../../test/services/chromium.ts';
import { createBench } from '../figures.ts';
import { ANA, fill, percentile } from '../support.ts';
import { eventToPixelMs } from './event-to-pixel.ts';
import { firstRowsOf } from './first-rows.ts';
import { heapAfter } from './memory.ts';
import { scroll } from './scrolling.ts';
import { firstScripts } from './size.ts';
import { transferOf } from './transfer.ts';
import { zoom } from './zooming.ts';

/**
 * `npm run bench:page`: weight and speed of the page in a real Chromium on this machine. Run `npm run build:web` first.
 * `--json` prints one object. Without a GPU the processor draws the frames, so other load shows in the figures.
 */
const LONG_LOG_EVENTS = 10_000;
const LIVE_EVENTS = [10_000, 100_000];
const MIDDLING_EVENTS = 13_000;
const LIST = '?list=events&kind=*';
/** A short conversation is as large as one of the demo. */
const TRANSFERS = [
  ['list of conversations', '', 60],
  ['a conversation', 'c/failed', 60],
  [`a conversation of ${LONG_LOG_EVENTS} events`, 'c/long', 150],
] as const;

const json = process.argv.includes('--json');
const bench = createBench({ runs: 1, json });
const FIRST_ROWS = [
  ['list of conversations', '', '.inbox-row'],
  ['a conversation', 'c/failed', '.words'],
  [`a conversation of ${LONG_LOG_EVENTS} events`, 'c/long', '.words'],
] as const;

const chromium = await installChromium();
if ('missing' in chromium) throw new Error(`no Chromium: ${chromium.missing}`);
if (!json) console.log(`${describeChromium(chromium)}, Node ${process.version}, ${cpus().length} cores`);

bench.heading('Scripts before the first view, in Brotli');
bench.add('scripts that the document names', firstScripts(process.env['TROUPE_TEST_WEB']) / 1_000, 'kB', {
  atMost: 40,
});

await using stage = await openStage(OFFICE);
await playFailed(stage, 'failed');
await importLongLog(stage, 'long', LONG_LOG_EVENTS);
await stage.troupe.send('live', { author: ANA, to: [], content: 'mark-first', replyTo: 'none' as never });
const browser = await launchChromium(chromium.path);
try {
  const viewport = { width: 1280, height: 800 };
  const open = async (path: string) => {
    const page = await (await browser.newContext({ viewport })).newPage();
    await page.goto(`${stage.url}${path}`);
    await page.waitForLoadState('networkidle', { timeout: 2_000 }).catch(() => {});
    return page;
  };

  bench.heading('From the request to the first rows, empty cache, medians of 5');
  for (const [what, path, rows] of FIRST_ROWS) {
    const { ms, floorMs, longestTaskMs } = await firstRowsOf(browser, `${stage.url}${path}`, rows);
    bench.add(what, ms, 'ms');
    bench.add('  over an empty page', ms - floorMs, 'ms', { atMost: 250 });
    bench.add('  longest task over 50 ms', longestTaskMs, 'ms', { atMost: 50 });
  }

  bench.heading('Transfer, empty cache, in kB: all; of that scripts; of that JSON');
  for (const [what, path, atMost] of TRANSFERS) {
    const { all, scripts, api } = await transferOf(browser, `${stage.url}${path}`);
    bench.add(what, all / 1_000, 'kB', { atMost });
    bench.add('  scripts', scripts / 1_000, 'kB');
    bench.add('  JSON', api / 1_000, 'kB');
  }

  bench.heading('From append to pixel, 200 events');
  const live = await open(`c/live${LIST}`);
  const delays = await eventToPixelMs(live, stage, 'live');
  bench.add('p50', percentile(delays, 0.5), 'ms');
  bench.add('p95', percentile(delays, 0.95), 'ms', { atMost: 100 });

  bench.heading(`Scrolling through ${LONG_LOG_EVENTS} events`);
  const long = await open(`c/long${LIST}`);
  const frames = await scroll(long);
  bench.add('usual frame', frames.usualMs, 'ms');
  bench.add('longest frame', frames.longestMs, 'ms', { atMost: 50 });
  bench.add('frames over 50 ms', frames.long, `of ${frames.frames}`, { atMost: 0 });
  bench.add('scrolled', frames.distance, 'px');
  await long.close();

  bench.heading('Memory: live objects after events that came while the page was open');
  const [few = Number.NaN, many = Number.NaN] = await heapAfter(live, stage, 'live', LIVE_EVENTS);
  bench.add('after 10,000', few, 'MiB');
  bench.add('after 100,000', many, 'MiB');
  bench.add('growth', many / few, 'times', { atMost: 1.2 });
  await live.close();

  await fill(stage.troupe, 'middling', MIDDLING_EVENTS);
  for (const id of ['middling', 'live']) {
    const { head } = await stage.troupe.state(id);
    bench.heading(`Zooming the timeline of ${head} events, from all to a few and back`);
    const timed = await open(`c/${id}`);
    const drawn = await zoom(timed);
    bench.add('usual frame', drawn.usualMs, 'ms');
    bench.add('longest frame', drawn.longestMs, 'ms', { atMost: 50 });
    bench.add('frames over 50 ms', drawn.long, `of ${drawn.frames}`, { atMost: 0 });
    await timed.close();
  }
} finally {
  await browser.close();
}

const missed = bench.figures.filter(({ met }) => met === false);
if (json) console.log(JSON.stringify({ chromium: chromium.how, figures: bench.figures }));
else if (missed.length > 0) console.log(`\n${missed.length} goal(s) missed on this run.`);
