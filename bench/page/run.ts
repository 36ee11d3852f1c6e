import { cpus } from 'node:os';
import { launchChromium } from '../../test/page/browser.ts';
import { openCopied } from '../../test/page/kept-world.ts';
import { describeChromium, installChromium } from '../../test/services/chromium.ts';
import { createBench } from '../figures.ts';
import { ANA, fill, percentile } from '../support.ts';
import { eventToPixelMs } from './event-to-pixel.ts';
import { firstRowsOf, SLOW } from './first-rows.ts';
import { heapAfter } from './memory.ts';
import { scroll } from './scrolling.ts';
import { firstScripts } from './size.ts';
import { tabsOf } from './tabs.ts';
import { transferOf } from './transfer.ts';
import { zoom } from './zooming.ts';

/**
 * `npm run bench:page`: weight and speed of the page in a real Chromium on this machine, on a copy of the world of `npm run world`.
 * Run `npm run build:web` first.
 * `--json` prints one object, `--requests` every request of a first load. Without a GPU the processor draws the frames, so other load shows in the figures.
 */
const LIVE_EVENTS = [10_000, 100_000];
const MIDDLING_EVENTS = 13_000;
const LIST = '?list=events&kind=*';
const TABS = 20;
const PLACES = [
  { what: 'home', path: '', rows: '.inbox-row', mostMs: 250, mostKb: 50 },
  { what: 'a short conversation', path: 'c/bill-0', rows: '.words', mostMs: 250, mostKb: 70 },
  { what: 'a conversation of 11,626 events', path: 'c/archive', rows: '.words', mostMs: 350, mostKb: 120 },
] as const;

const json = process.argv.includes('--json');
const bench = createBench({ runs: 1, json });
const chromium = await installChromium();
if ('missing' in chromium) throw new Error(`no Chromium: ${chromium.missing}`);
if (!json) console.log(`${describeChromium(chromium)}, Node ${process.version}, ${cpus().length} cores`);

bench.heading('Scripts before the first view, in Brotli');
bench.add('scripts that the document names', firstScripts(process.env['TROUPE_TEST_WEB']) / 1_000, 'kB', {
  atMost: 40,
});

await using world = await openCopied();
await world.troupe.send('live', { author: ANA, to: [], content: 'mark-first', replyTo: 'none' as never });
const browser = await launchChromium(chromium.path);
try {
  const viewport = { width: 1280, height: 800 };
  const open = async (path: string) => {
    const page = await (await browser.newContext({ viewport })).newPage();
    await page.goto(`${world.url}${path}`);
    await page.waitForLoadState('networkidle', { timeout: 2_000 }).catch(() => {});
    return page;
  };

  const counting = await open('');
  await counting.getByText(/Counting:/).waitFor({ state: 'hidden', timeout: 300_000 });
  await counting.close();

  bench.heading('From the request to the first rows, empty cache, medians of 5');
  for (const { what, path, rows, mostMs } of PLACES) {
    const { ms, floorMs, longestTaskMs } = await firstRowsOf(browser, `${world.url}${path}`, rows);
    bench.add(what, ms, 'ms');
    bench.add('  over an empty page', ms - floorMs, 'ms', { atMost: mostMs });
    bench.add('  longest task over 50 ms', longestTaskMs, 'ms', { atMost: 50 });
  }
  const slow = await firstRowsOf(browser, world.url, '.inbox-row', SLOW);
  bench.add('home, 400 ms away at 50 kB/s', slow.ms, 'ms', { atMost: 2_000 });

  bench.heading('Transfer, empty cache, in kB: all; of that scripts; of that JSON');
  for (const { what, path, mostKb } of PLACES) {
    const { all, scripts, api, asked } = await transferOf(browser, `${world.url}${path}`);
    bench.add(what, all / 1_000, 'kB', { atMost: mostKb });
    bench.add('  scripts', scripts / 1_000, 'kB');
    bench.add('  JSON', api / 1_000, 'kB');
    if (process.argv.includes('--requests'))
      for (const each of asked)
        console.log(
          `${String(each.bytes).padStart(12)} bytes after ${Math.round(each.atMs)} ms: ${each.path}`,
        );
  }

  bench.heading(`${TABS} tabs of one browser`);
  bench.add('from Enter to the words in the last one', await tabsOf(browser, world.url, TABS), 'ms', {
    atMost: 1_000,
  });

  bench.heading('From append to pixel, 200 events');
  const live = await open(`c/live${LIST}`);
  const delays = await eventToPixelMs(live, world.troupe, 'live');
  bench.add('p50', percentile(delays, 0.5), 'ms');
  bench.add('p95', percentile(delays, 0.95), 'ms', { atMost: 100 });

  bench.heading('Scrolling through 11,626 events');
  const long = await open(`c/archive${LIST}`);
  const frames = await scroll(long);
  bench.add('usual frame', frames.usualMs, 'ms');
  bench.add('longest frame', frames.longestMs, 'ms', { atMost: 50 });
  bench.add('frames over 50 ms', frames.long, `of ${frames.frames}`, { atMost: 0 });
  bench.add('scrolled', frames.distance, 'px');
  await long.close();

  bench.heading('Memory: live objects after events that came while the page was open');
  const [few = Number.NaN, many = Number.NaN] = await heapAfter(live, world.troupe, 'live', LIVE_EVENTS);
  bench.add('after 10,000', few, 'MiB');
  bench.add('after 100,000', many, 'MiB');
  bench.add('growth', many / few, 'times', { atMost: 1.2 });
  await live.close();

  await fill(world.troupe, 'middling', MIDDLING_EVENTS);
  for (const id of ['middling', 'live']) {
    const { head } = await world.troupe.state(id);
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
