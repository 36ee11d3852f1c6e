import { launchChromium } from '../../test/page/browser.ts';
import { ASKERS, clickRapidly } from '../../test/page/rapid-clicks.ts';
import { openStage } from '../../test/page/stage.ts';
import { installChromium } from '../../test/services/chromium.ts';

/** `npm run bench:rapid -- [clicks] [seed]`: rapid clicks while approvals come and go. Exits 1 after a wrong decision. */
const CLICKS = Number(process.argv[2] ?? 1_000);
const SEED = Number(process.argv[3] ?? 1);

const chromium = await installChromium();
if ('missing' in chromium) throw new Error(`no Chromium: ${chromium.missing}`);
const browser = await launchChromium(chromium.path);
try {
  const places = [
    ['home', '', (agent: string) => `room-${agent}`],
    ['a conversation', 'c/all?list=turns', () => 'all'],
  ] as const;
  for (const [name, path, placeOf] of places) {
    await using stage = await openStage(ASKERS);
    await stage.say(placeOf('a0'), [], 'The bills of today.');
    const page = await browser.newPage({ viewport: { width: 1280, height: 1400 } });
    await page.goto(`${stage.url}${path}`);
    const options = { clicks: Math.ceil(CLICKS / places.length), seed: SEED, placeOf };
    const { clicks, sent, decided } = await clickRapidly(page, stage, options);
    const aimed = new Set(sent.map((each) => each.aimed));
    const wrong = [
      ...sent.filter((each) => each.aimed !== each.request).map(({ request }) => request),
      ...decided.filter((request) => !aimed.has(request)),
    ];
    console.log(`${name}: ${clicks} clicks, ${decided.length} approved, ${wrong.length} wrong`);
    if (wrong.length > 0 || decided.length === 0) process.exitCode = 1;
    await page.close();
  }
} finally {
  await browser.close();
}
