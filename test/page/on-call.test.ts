import { expect } from 'vitest';
import { eventually, pageTest, shared, useBrowser } from './browser.ts';
import { openWorld } from './world-stage.ts';

/** Somebody on call opens a world that they do not know. */
const browsing = useBrowser();
const world = shared(() => openWorld({ needsKey: true }));

const openWith = (key: string, path = '', more = {}) =>
  browsing.open(`${world().url}${path}#token=${world().keys[key]}`, more);

pageTest('the header says who uses the page: tenant, key, author and what the key may do', async () => {
  const page = await openWith('ben');
  await page.locator('.caller summary').click();
  const box = page.locator('.caller-box');
  await box.getByText('Ben Okafor (ben)').waitFor();
  expect(await box.innerText()).toMatch(/Tenant\s+default[^]*key:[^]*✓ read conversations[^]*– pause, abort/);
  await box.getByRole('button', { name: 'Use another key' }).click();
  await box.getByLabel('Token', { exact: true }).fill(world().keys['refunds only'] ?? '');
  await box.getByRole('button', { name: 'Open' }).click();
  await page.getByText('Operator', { exact: true }).waitFor();
  await page.locator('.caller summary').click();
  expect(await page.locator('.caller-box').innerText()).toContain('refund-*');
  browsing.expectErrors(/401/);
  await page.getByRole('button', { name: 'Leave' }).click();
  await page.getByRole('heading', { name: 'This server requires a token' }).waitFor();
});

pageTest('a wrong key is refused in words, and so is one without the scope read', async () => {
  browsing.expectErrors(/40[13]/);
  const page = await browsing.open(`${world().url}#token=trp_wrong`);
  await page.getByRole('alert').getByText('The token was refused').waitFor();
  const writer = await openWith('writes only');
  await writer.getByRole('heading', { name: 'This key may not read' }).waitFor();
  await writer.getByRole('alert').getByText('scope "read"').waitFor();
});

pageTest('what a key may not do is not offered', async () => {
  const page = await openWith('reader', 'c/bill-0?agent=billing');
  await page.getByText('Incorrect API key').first().waitFor();
  await page.getByPlaceholder('Your key may not write').waitFor();
  await eventually(() =>
    page.getByRole('button', { name: /^(Retry|Pause|Retire|Run again|New conv)/ }).count(),
  ).toBe(0);
  const operator = await openWith('everything', 'c/bill-0?agent=billing');
  await operator.getByRole('button', { name: 'Retry' }).first().waitFor();
});

pageTest(
  'what waits for people says when it expires, at home and in its conversation, the first one first',
  async () => {
    const page = await openWith('everything');
    const asks = page.getByRole('region', { name: 'Needs you' });
    await asks.locator('.due').first().waitFor();
    const all = await asks.locator('.due').all();
    const dues = await Promise.all(all.map((due) => due.getAttribute('datetime')));
    expect(dues).toEqual(dues.toSorted((a, b) => String(a).localeCompare(String(b))));
    const open = await openWith('everything', 'c/refund-0?agent=refunds');
    await open
      .getByRole('region', { name: 'Waiting for you' })
      .getByText(/expires in \d+ h/)
      .waitFor();
    await open
      .getByRole('region', { name: 'Facts' })
      .getByText(/expires in/)
      .waitFor();
  },
);

pageTest(
  'what is broken is grouped by its cause, and all of a cause are retried after a question',
  async () => {
    const page = await openWith('everything');
    const failed = page.getByRole('region', { name: 'Failed' });
    await failed.getByRole('button', { name: /7 × provider_auth of Billing/ }).waitFor();
    await eventually(() => failed.getByRole('listitem').count()).toBeLessThan(6);
    const group = failed.locator('.cause').filter({ hasText: 'Research' });
    await failed.getByText(/× provider_model_unknown of Translator/).waitFor();
    await failed
      .locator('.cause')
      .filter({ hasText: 'Billing' })
      .getByRole('button', { name: 'Retry all…' })
      .click();
    await failed.getByRole('button', { name: 'Retry 7' }).click();
    for (const n of [0, 6, 12])
      await eventually(async () =>
        (await world().troupe.events(`bill-${n}`)).events.map(({ kind, body }) =>
          kind === 'command' ? (body as { command: string }).command : kind,
        ),
      ).toContain('retry');
    expect(await group.count()).toBe(0);
  },
);

pageTest('home is worked by keys: j and k move, Enter opens, a and d decide', async () => {
  const page = await openWith('ben');
  await page.getByRole('region', { name: 'Needs you' }).waitFor();
  const focused = () =>
    page.evaluate<string>(
      "document.activeElement.matches('.inbox-row, .cause-open') ? document.activeElement.textContent : ''",
    );
  const moveTo = async (words: RegExp) => {
    for (let presses = 0; presses < 40 && !words.test(await focused()); presses += 1)
      await page.keyboard.press('j');
    expect(await focused()).toMatch(words);
  };
  await moveTo(/× Refunds wants to run refund/);
  await page.keyboard.press('Enter');
  const isOpened = 'document.activeElement.ariaExpanded';
  await eventually(() => page.evaluate(isOpened)).toBe('true');
  const line = page.locator('li:has(> .inbox-row:focus)');
  await moveTo(/^(?!.*×).*refund/);
  const place = await line.locator('.inbox-row').getAttribute('href');
  await eventually(() => line.locator('[aria-keyshortcuts="d"]').getAttribute('aria-disabled')).toBeNull();
  await page.keyboard.press('d');
  const denied = decodeURIComponent(place?.split('/').at(-1) ?? '');
  await eventually(async () =>
    (await world().troupe.events(denied)).events.findLast(({ kind }) => kind === 'approval.decided'),
  ).toMatchObject({ body: { outcome: 'denied' } });
  await page.getByText('6 × Refunds wants to run refund').waitFor();
  expect(await page.evaluate('document.documentElement.dataset.theme')).toBeUndefined();
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await eventually(() => new URL(page.url()).pathname).toMatch(/^\/c\/refund-/);
});

pageTest('an expanded group stays so while its lines come and go, and for whoever comes back', async () => {
  const page = await openWith('reader');
  let kept = 9;
  await page.route('**/api/inbox?*', async (route) => {
    const response = await route.fetch();
    const { lines, ...rest } = (await response.json()) as { lines: { id: string }[] };
    const refunds = lines.filter(({ id }) => id.startsWith('refund-'));
    const gone = new Set(refunds.slice(kept).map(({ id }) => id));
    await route.fulfill({ response, json: { ...rest, lines: lines.filter(({ id }) => !gone.has(id)) } });
  });
  const group = page.getByRole('button', { name: /× Refunds wants to run refund/ });
  const isExpanded = () => group.getAttribute('aria-expanded');
  const readAgain = "document.dispatchEvent(new Event('visibilitychange'))";
  await group.press('Enter');
  await eventually(isExpanded).toBe('true');
  // What expires first stands alone, before the group.
  for (kept of [3, 9]) {
    await page.evaluate(readAgain);
    await group.getByText(new RegExp(`^${kept === 3 ? 2 : '[^2]'} ×`)).waitFor();
    expect(await isExpanded()).toBe('true');
    expect(await page.evaluate('document.activeElement.className')).toBe('cause-open');
  }
  await page.locator('.cause ul').getByRole('link').first().click();
  await page.getByRole('log').first().waitFor();
  await page.goBack();
  await eventually(isExpanded).toBe('true');
  await page.unrouteAll({ behavior: 'ignoreErrors' });
});

pageTest('approvals stand once, and those of one tool are denied together by whoever may', async () => {
  const page = await openWith('ben');
  await page.getByRole('region', { name: 'Needs you' }).waitFor();
  expect(
    await page.getByRole('region', { name: 'Stuck now' }).getByText('waits for a decision').count(),
  ).toBe(0);
  const refunds = page.locator('.cause').filter({ hasText: 'wants to run refund' });
  await refunds.getByRole('button', { name: /6 × Refunds/ }).click();
  await refunds.getByText('"euros"').first().waitFor();
  await refunds.getByRole('button', { name: 'Deny all…' }).click();
  await refunds.getByRole('button', { name: 'Deny 6' }).click();
  await eventually(() => page.locator('.cause').filter({ hasText: 'wants to run refund' }).count()).toBe(0);
  const reader = await openWith('reader');
  await reader.getByRole('region', { name: 'Failed' }).waitFor();
  expect(await reader.getByRole('button', { name: /all…$/ }).count()).toBe(0);
});

pageTest(
  'a conversation says what it is stuck at: who waits for whom, down to the silent model',
  async () => {
    const page = await openWith('everything', 'c/stamp');
    const stuck = page.getByRole('region', { name: 'Stuck here' });
    await eventually(() => stuck.innerText()).toMatch(
      /Front desk waits for Billing waits for Customs no word from the model for \d+ min/,
    );
    await stuck.getByRole('link', { name: 'Customs' }).click();
    await eventually(() => new URL(page.url()).pathname).toMatch(/c\/stamp\./);
    await page.getByRole('region', { name: 'Stuck here' }).getByRole('button', { name: 'Abort' }).waitFor();
  },
);

/** Between the total that the page shows and the sum over all conversations. */
async function differenceOfCosts(): Promise<number> {
  const headers = { authorization: `Bearer ${world().keys['everything']}` };
  const response = await fetch(`${world().url}api/costs?from=0`, { headers });
  const { total } = (await response.json()) as { total: { usd: number } };
  const { conversations } = await world().troupe.listConversations({ kind: 'conversation', limit: 500 });
  const costs = await Promise.all(conversations.map(({ id }) => world().troupe.cost(id)));
  return Math.abs(total.usd - costs.reduce((sum, cost) => sum + (cost.total.usd ?? 0), 0));
}

pageTest('which agent cost most, and why, is two clicks away', async () => {
  const page = await openWith('everything');
  await page.getByRole('link', { name: 'Costs' }).click();
  await page.getByLabel('Period').selectOption('month');
  const agents = page.getByRole('table').filter({ has: page.getByRole('columnheader', { name: 'Agent' }) });
  await agents.getByRole('rowheader', { name: 'Archivist' }).waitFor();
  expect(await agents.getByRole('rowheader').first().innerText()).toBe('Archivist');
  const people = page.getByRole('table').filter({ has: page.getByRole('columnheader', { name: 'Person' }) });
  await people.getByRole('rowheader', { name: 'Ana Torres' }).waitFor();
  await page
    .getByText('Budget of')
    .or(page.getByRole('progressbar', { name: 'Budget of tenant' }))
    .first()
    .waitFor();
  // On a phone names stay on one line, and a shade shows that the table goes on.
  const wide = page.viewportSize();
  await page.setViewportSize({ width: 390, height: 844 });
  const name = agents.getByRole('rowheader', { name: 'Archivist' });
  await eventually(async () => (await name.boundingBox())?.height ?? 99).toBeLessThan(40);
  const scroller = page.locator('.costs-scroll').first();
  expect(await scroller.evaluate((box) => box.scrollWidth > box.clientWidth)).toBe(true);
  expect(
    await page.evaluate(`getComputedStyle(document.querySelector('.costs-scroll')).backgroundImage`),
  ).toContain('gradient');
  if (wide) await page.setViewportSize(wide);
  // A turn that another test has asked for may be at work between the two.
  await eventually(differenceOfCosts).toBeLessThan(5e-7);
  expect(new URL(page.url()).pathname).toBe('/costs');
  await page.reload();
  await page.getByRole('heading', { name: 'Costs' }).waitFor();
  await agents.getByRole('link', { name: 'Archivist' }).click();
  await page.getByRole('region', { name: 'Found' }).getByText('archive').first().waitFor();
});

pageTest(
  'the head of a conversation has its dollars and leads to the turn that read least from the cache',
  async () => {
    const page = await openWith('everything', 'c/archive');
    await page.getByRole('link', { name: /^\$\d/ }).waitFor();
    await page
      .getByRole('region', { name: 'Facts' })
      .getByText(/\$[\d.]+, \d+ turns/)
      .waitFor();
    await page.getByRole('link', { name: /^cache \d+%/ }).click();
    await page
      .getByRole('region', { name: 'Detail', exact: true })
      .getByText('Cache broke')
      .first()
      .waitFor();
  },
);

pageTest('a failed turn is tried again on the line of its conversation', async () => {
  const page = await openWith('everything', '?q=contract-7');
  await page.getByRole('listitem').getByRole('button', { name: 'Retry', exact: true }).first().click();
  await eventually(async () =>
    (await world().troupe.events('contract-7')).events.some(
      ({ kind, body }) => kind === 'command' && Object(body).command === 'retry',
    ),
  ).toBe(true);
});

pageTest(
  'what is typed into a filter or the search stays as it is typed, and is in the address',
  async () => {
    const page = await openWith('everything');
    const filter = page.getByRole('searchbox', { name: 'Id or words of the first message' });
    await filter.pressSequentially('letter to the harbour ');
    expect(await filter.inputValue()).toBe('letter to the harbour ');
    await page.getByRole('button', { name: 'Clear' }).click();
    const search = page.getByRole('searchbox', { name: 'Search all conversations' });
    await search.pressSequentially('crane weigh');
    await page.getByText(/hits? in/).waitFor();
    await page.reload();
    await page.getByText(/hits? in/).waitFor();
    expect(await search.inputValue()).toBe('crane weigh');
  },
);

pageTest('whoever acts goes on to see the same agent', async () => {
  const page = await openWith('everything', 'c/contract-1');
  const detail = page.getByRole('region', { name: 'Detail', exact: true });
  await detail
    .getByRole('button', { name: 'Pause' })
    .or(detail.getByRole('button', { name: 'Retire' }))
    .first()
    .waitFor();
  await detail
    .getByRole('button', { name: /^(Pause|Retry)$/ })
    .first()
    .click();
  await eventually(() => page.url()).toContain('agent=translator');
});

pageTest(
  'the search has an address with author, kind and time, and quotes stand under what they quote',
  async () => {
    const page = await openWith('everything');
    const search = page.getByRole('searchbox', { name: 'Search all conversations' });
    await search.pressSequentially('refund');
    const hits = page.locator('.search-all li');
    await eventually(() => hits.count()).toBeGreaterThan(3);
    expect(await page.getByRole('region', { name: 'Failed' }).count()).toBe(0);
    await page.getByLabel('Author').fill('ben okafor');
    await page.getByLabel('Author').press('Enter');
    await eventually(async () => new Set(await hits.locator('bdi').allInnerTexts())).toEqual(
      new Set(['Ben Okafor']),
    );
    await page.getByLabel('Since').selectOption('day');
    expect(new URL(page.url()).search).toMatch(/since=day.*find=refund&author=ben\+okafor/);
    await page.reload();
    await eventually(async () => new Set(await hits.locator('bdi').allInnerTexts())).toEqual(
      new Set(['Ben Okafor']),
    );
    await page.getByRole('link', { name: 'All conversations' }).last().click();
    await page.getByRole('region', { name: 'Failed' }).waitFor();
    await search.fill('ledger quay ship');
    await page.getByLabel('Kinds of events').selectOption('Every event');
    const quotes = page.locator('.search-quotes').first();
    await quotes.locator('summary').click();
    await quotes
      .getByText(/the quay/)
      .first()
      .waitFor();
  },
);

pageTest('what a bulk act has not sent yet can be stopped', async () => {
  const page = await openWith('everything');
  const cause = page.locator('.cause').filter({ hasText: 'Translator' });
  const { promise: isHeld, resolve: held } = Promise.withResolvers<void>();
  const { promise: mayGo, resolve: release } = Promise.withResolvers<void>();
  await page.route('**/api/commands', async (route) => {
    held();
    await mayGo;
    await route.continue();
  });
  await cause.getByRole('button', { name: 'Retry all…' }).click();
  await cause.getByRole('button', { name: /^Retry \d$/ }).click();
  await isHeld;
  await cause.getByRole('button', { name: 'Stop' }).click();
  release();
  await cause.getByText(/Stopped after 1 of \d/).waitFor();
});

/** What can be pressed or written into, and lies below something else at its middle. */
const COVERED = `[...document.querySelectorAll('button, input, select, textarea, .task-acts, .failure')].flatMap((each) => {
  const { x, y, width, height } = each.getBoundingClientRect();
  const middle = [x + width / 2, y + height / 2];
  if (width === 0 || each.closest('[hidden], dialog:not([open])') || !each.checkVisibility()) return [];
  for (let box = each.parentElement; box; box = box.parentElement) {
    const { top, bottom } = box.getBoundingClientRect();
    // Below the fold of what scrolls.
    if (getComputedStyle(box).overflowY !== 'visible' && (middle[1] < top || middle[1] > bottom)) return [];
  }
  const above = document.elementFromPoint(...middle);
  const isOver = above !== null && !each.contains(above) && !above.contains(each);
  const label = each.closest('label');
  return isOver && above !== label && getComputedStyle(above).position !== 'static' ? [each.outerHTML.slice(0, 80)] : [];
})`;

pageTest('nothing floats over buttons, reasons and fields', async () => {
  for (const width of [390, 1_440]) {
    const page = await openWith('everything', 'c/archive', { viewport: { width, height: 800 } });
    await page.getByRole('log').getByText('Indexed.').last().waitFor();
    await eventually(async () => {
      await page.evaluate('document.querySelector(".reading-scroller").scrollTop = 0');
      return page.getByRole('button', { name: 'Newest' }).isVisible();
    }).toBe(true);
    expect(await page.evaluate(COVERED)).toEqual([]);
    const asked = await openWith('everything', 'c/credit-4', { viewport: { width, height: 560 } });
    await asked.getByRole('log').getByText('credit note').first().waitFor();
    expect(await asked.evaluate(COVERED)).toEqual([]);
  }
});

pageTest('every turn is a number away, whatever the page keeps', async () => {
  const page = await openWith('everything', 'c/archive?agent=archivist');
  await page.getByRole('region', { name: 'Agents' }).getByText('Archivist').waitFor();
  await page.keyboard.press('Control+k');
  await page.keyboard.type('turn 7');
  await page.getByRole('option').filter({ hasText: 'turn 7 of Archivist' }).first().click();
  const heading = page.getByRole('region', { name: 'Detail', exact: true }).getByRole('heading').first();
  await eventually(() => heading.innerText()).toMatch(/turn 7$/);
  await page.getByRole('tab', { name: 'Diff' }).click();
  await page.getByLabel('From turn').fill('12');
  await page.getByLabel('From turn').press('Enter');
  await page.getByLabel('to turn').fill('11');
  await page.getByLabel('to turn').press('Enter');
  await eventually(() => heading.innerText()).toMatch(/turn 11$/);
  expect(new URL(page.url()).searchParams.get('vs')).toBe('archive:archivist:12');
});
