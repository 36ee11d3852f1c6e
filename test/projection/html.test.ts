import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Event } from '../../src/events/index.ts';
import { formatMarkdown } from '../../src/library/projection/markdown.ts';
import { escapeHtml, exportHtml } from '../../src/library/projection/render-html.ts';
import { workplace } from '../cli/harness.ts';
import { ANA, scripted, startApi } from '../http/harness.ts';
import { agent, ends, logOf, says, starts } from './logs.ts';

const HOSTILE = `</p></details><script>alert(1)</script><img src=x onerror='alert(2)'>" onload="x" \u202egpj.exe\u0000`;

async function page(log: Event[]): Promise<string> {
  let html = '';
  const conversation = log[0]?.conversation ?? 'c';
  for await (const part of exportHtml(conversation, () => Readable.from([log]))) html += part;
  return html;
}

/** Every tag of a page. */
function tagsOf(html: string): string[] {
  return [...html.matchAll(/<[^>]*>/g)].map(([tag]) => tag);
}

const OURS =
  /^<(?:!doctype html|html lang="en"|meta [^<>]*|\/?(?:html|head|title|style|body|header|h1|p|br|table|thead|tbody|tr|th|td|nav|ol|li|a|main|article|details|summary|span|pre|div|ul|blockquote|strong|em|del|code|hr)(?: href="#e\d+"| id="e\d+")?(?: class="[a-z -]+"| open)?(?: dir="auto")?|pre class="words-code" tabindex="0"|div class="words-table" tabindex="0" role="group" aria-label="Table"|ol start="\d+"|span title="[^"<>]*"|a href="(?:https?:\/\/|mailto:)[^"<>]*" target="_blank" rel="noopener noreferrer nofollow"|input type="checkbox" disabled aria-label="done"(?: checked)?)>$/i;

/** The same text in every place of a log that can have one. */
function everywhere(text: string): Event[] {
  const own = (kind: string, body: object) => ({
    kind,
    author: { ...agent('ada'), name: text },
    turn: 'c:ada:1',
    body,
  });
  const by = { kind: 'user', id: 'u', name: text } as const;
  const summary = {
    goal: text,
    done: text,
    state: '',
    next: '',
    openQuestions: [text],
    artifacts: [text],
    why: '',
  };
  const log = logOf(
    says(text, ['ada'], by),
    starts('ada', 1, 1, [1]),
    own('step', { index: 0, content: text, calls: [{ id: 'k', name: text, args: text }] }),
    own('tool.result', { call: 'k', name: text, outcome: 'failed', content: text }),
    own('error', { code: text, message: text }),
    own('question', { question: 'q', text, by: [], choices: [text], group: 'g', join: 'all' }),
    own('approval.requested', { request: 'a', tool: text, args: text, argsHash: 'h', by: [] }),
    own('handoff', { summary }),
    {
      ...ends('ada', 1, 'failed', [1], text),
      body: { covers: [1], code: text, message: text, partial: text },
    },
    { kind: 'phase.changed', body: { phase: text, instructions: text } },
    {
      kind: 'message',
      body: { content: '', attachments: [{ type: 'text', name: text, mediaType: 'text/plain', text }] },
    },
  );
  const strange = { ...log[0], seq: log.length + 1, kind: text, body: { [text]: text } };
  return [...log, strange as unknown as Event];
}

test('no text becomes a tag or an attribute of an exported page', async () => {
  const bits = fc.constantFrom(
    '<',
    '>',
    '"',
    "'",
    '&',
    '`',
    '=',
    '</',
    '<!--',
    ']]>',
    '<script>',
    ' onload=',
    '[a](',
    'https://x ',
    'javascript:x)',
    '**',
    '\n- [x] ',
    '\n|',
    '|-|\n',
    '```',
    '\u0000',
    'x',
  );
  const texts = fc.oneof(
    fc.string(),
    fc.array(bits, { maxLength: 12 }).map((each) => each.join('')),
  );
  await fc.assert(
    fc.asyncProperty(texts, async (text) => {
      expect(escapeHtml(text)).not.toMatch(/[<>"'`\0]/);
      for (const tag of tagsOf(await page(everywhere(text)))) expect(tag).toMatch(OURS);
    }),
    { numRuns: 60 },
  );
});

test('the page of a hostile conversation has only text, no script and no requests', async () => {
  const html = await page(everywhere(HOSTILE));
  expect(html).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
  expect(html).not.toMatch(/<script|<img|<link|<iframe|url\(|@import|https?:|\u202e|\0/);
  expect(html).toContain(
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">`,
  );
  expect(html.match(/<details/g)?.length).toBe(html.match(/<\/details>/g)?.length);
});

test('what was written as Markdown is formatted: headings, lists, code, tables and links, but no image and no HTML', async () => {
  const text = [
    '# Findings',
    'It is **late** and `broken`.\nSee [the page](https://example.org/a?b=1&c=2), [this](javascript:alert(1)).',
    '1. one\n2. two\n\n- [x] done\n- [ ] open',
    '| a | b |\n|---|---|\n| 1 | <b>2</b> |',
    '```ts\nif (a < b) return;\n```',
    '![a cat](https://example.org/cat.png)',
  ].join('\n\n');
  const html = await page(logOf(says(text, ['ada']), says(`**${'x'.repeat(20_000)}**`)));
  const main = html.slice(html.indexOf('<main>'));
  for (const part of [
    '<p class="words-heading">Findings</p>',
    '<strong>late</strong> and <code>broken</code>.<br>',
    '<a href="https://example.org/a?b=1&amp;c=2" target="_blank" rel="noopener noreferrer nofollow">the page</a>',
    '<span title="javascript:alert(1)">this</span>',
    '<ol start="1"><li>one</li><li>two</li></ol>',
    '<input type="checkbox" disabled aria-label="done" checked> done',
    '<th>a</th><th>b</th>',
    '<td>&lt;b&gt;2&lt;/b&gt;</td>',
    '<code>if (a &lt; b) return;</code>',
    '<a href="https://example.org/cat.png" target="_blank" rel="noopener noreferrer nofollow">a cat</a>',
    // Too long to be formatted.
    `<p class="words" dir="auto">**xxx`,
  ])
    expect(main).toContain(part);
  for (const tag of tagsOf(html)) expect(tag).toMatch(OURS);
});

test('a text of marks that would take long to pair is shown as written', () => {
  expect(formatMarkdown('*a_'.repeat(6_000))).toEqual([
    expect.objectContaining({ content: ['*a_'.repeat(6_000)] }),
  ]);
  expect(formatMarkdown('> '.repeat(6_000))).toBeNull();
  expect(formatMarkdown('1. '.repeat(6_000))).toBeNull();
});

test('a page has the agents, the turns and every word in the order of the log', async () => {
  const own = (kind: string, body: object) => ({ kind, author: agent('ada'), turn: 'c:ada:1', body });
  const long = 'word '.repeat(5_000);
  const html = await page(
    logOf(
      says('Hello', ['ada']),
      starts('ada', 1, 1, [1]),
      says('in between', [], agent('bob')),
      own('message', { content: long }),
      ends('ada', 1, 'failed', [1]),
      says('after'),
    ),
  );
  expect(html).toContain(long);
  expect(html).toContain('<td class="bad">failed: provider_failed</td>');
  const order = ['in between', '@ada, turn 1 · failed', long, 'it said 500', '</details>', 'after'];
  const places = order.map((each) => html.indexOf(each, html.indexOf('<main>')));
  expect(places).toEqual(places.toSorted((a, b) => a - b));
  expect(places).not.toContain(-1);
});

test('a page names every turn of a long log, says the cost and which time it is', async () => {
  const long = Array.from({ length: 700 }, (_, n) => [
    says(`Ledger ${n}`, ['ada']),
    starts('ada', n + 1, 1 + 3 * n, [1 + 3 * n]),
    ends('ada', n + 1, 'done', [1 + 3 * n]),
  ]).flat();
  let html = '';
  for await (const part of exportHtml('c', () => Readable.from([logOf(...long)]), 0.5)) html += part;
  expect(html.match(/<li><a href="#e\d+">@ada, turn \d+<\/a>/g)).toHaveLength(700);
  expect(html.match(/<summary>@ada, turn \d+ · done/g)).toHaveLength(700);
  for (const [, seq] of html.matchAll(/href="#e(\d+)"/g)) expect(html).toContain(`id="e${seq}"`);
  expect(html).toContain('(UTC)<br>');
  expect(html).toContain('$0.50 at the present prices');
});

test('the server sends the page sandboxed, and JSON lines unchanged', async () => {
  await using api = await startApi({ agents: [scripted('echo', [{ reply: '<b>bold</b>' }])] });
  await api.troupe.send('c', { author: ANA, to: ['echo'], content: 'Hello' });
  await api.troupe.idle();
  const { headers, body, status } = await api.get('/api/conversations/c/export?format=html');
  expect(status).toBe(200);
  expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(headers.get('content-security-policy')).toContain('sandbox');
  expect(body['text']).toContain('&lt;b&gt;bold&lt;/b&gt;');
  expect(body['text']).toMatch(/^<!doctype html>[^]*<\/html>\n$/);
  const lines = await api.app.request('/api/conversations/c/export');
  expect(lines.headers.get('content-type')).toContain('application/x-ndjson');
  expect((await api.get('/api/conversations/c/export?format=pdf')).status).toBe(400);
});

test('the command line writes the page to a file', async () => {
  using place = workplace();
  await place.run(['send', 'c1', 'Hello, <b>']);
  expect((await place.run(['export', 'c1', '--html', '--out', 'c1.html'])).out).toContain(
    'written to c1.html',
  );
  const html = readFileSync(path.join(place.dir, 'c1.html'), 'utf8');
  expect(html).toContain('Hello, &lt;b&gt;');
  expect(html.endsWith('</html>\n')).toBe(true);
});
