import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { marked, type Tokens } from 'marked';
import { ROOT } from './packed.ts';
import { type Passage, searchPages } from './search-pages.ts';

/**
 * `npm run docs -- --site FOLDER`: a static site of README and the pages for users, with a search that runs in the page. No
 * request leaves it, neither when it is built nor when it is read.
 */
const KINDS = [
  ['Start', /^(?:README|docs\/tutorial)\.md$/],
  ['How do I …', /^docs\/how-to\//],
  ['Reference', /^docs\/reference\//],
  ['Explanation', /^docs\/explanation\//],
] as const;

export interface Page {
  /** From the root of the repository. */
  file: string;
  title: string;
  text: string;
}

/** README and the pages for users, in the order of the menu. */
export function sitePages(): Page[] {
  const docs = readdirSync(path.join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .map((name) => path.posix.join('docs', name.replaceAll(path.sep, '/')))
    .filter((name) => name.endsWith('.md'))
    .toSorted();
  return KINDS.flatMap(([, pattern]) => ['README.md', ...docs].filter((file) => pattern.test(file))).map(
    (file) => {
      const text = readFileSync(path.join(ROOT, file), 'utf8');
      return { file, text, title: /^# (.+)$/m.exec(text)?.[1]?.replaceAll('`', '') ?? file };
    },
  );
}

/** The passages that the search knows: each heading with the text below it. */
export function passagesOf(pages: readonly Page[]): Passage[] {
  return pages.flatMap(({ file, title, text }) => {
    const parts = text.split(/^(?=#{1,3} )/m).filter((part) => part.startsWith('#'));
    return parts.map((part, index) => {
      const [line = ''] = part.split('\n', 1);
      const heading = line.replace(/^#+ /, '').replaceAll('`', '');
      const anchor = index === 0 ? '' : `#${anchorOf(heading)}`;
      return { page: htmlOf(file) + anchor, title, heading, text: part.slice(line.length).trim() };
    });
  });
}

/** Writes the site. Returns the number of its pages. */
export function buildSite(folder: string): number {
  const pages = sitePages();
  rmSync(folder, { recursive: true, force: true });
  const known = new Set(pages.map(({ file }) => file));
  for (const page of pages) {
    const target = path.join(folder, htmlOf(page.file));
    mkdirSync(path.dirname(target), { recursive: true });
    writeFileSync(target, document(page, pages, render(page, known)));
  }
  cpSync(path.join(ROOT, 'docs/screenshots'), path.join(folder, 'docs/screenshots'), { recursive: true });
  const index = JSON.stringify(passagesOf(pages));
  writeFileSync(
    path.join(folder, 'search.js'),
    `const PASSAGES = ${index};\n${searchPages.toString()}\n${SEARCH}`,
  );
  writeFileSync(path.join(folder, 'style.css'), STYLE);
  return pages.length;
}

const htmlOf = (file: string) => (file === 'README.md' ? 'index.html' : file.replace(/\.md$/, '.html'));

/** As GitHub does, so that links work in both places. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');
}

function render({ file, text }: Page, known: ReadonlySet<string>): string {
  const renderer = new marked.Renderer();
  renderer.heading = function heading({ tokens, depth, text: raw }: Tokens.Heading) {
    return `<h${depth} id="${anchorOf(raw.replaceAll('`', ''))}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
  };
  renderer.link = function link({ href, tokens }: Tokens.Link) {
    const at = hrefOf(file, href, known);
    const text = this.parser.parseInline(tokens);
    return at === null ? text : `<a href="${at}">${text}</a>`;
  };
  return marked.parse(text, { renderer, async: false });
}

/** Null: the site does not have what the link leads to, such as a file of the sources. */
function hrefOf(file: string, href: string, known: ReadonlySet<string>): string | null {
  if (/^(?:[a-z]+:|#)/.test(href)) return href;
  const [to = '', anchor] = href.split('#');
  const target = path.posix.join(path.posix.dirname(file), to);
  if (!known.has(target)) return null;
  const relative = path.posix.relative(path.posix.dirname(htmlOf(file)), htmlOf(target));
  return anchor === undefined ? relative : `${relative}#${anchor}`;
}

function document({ file, title }: Page, pages: readonly Page[], body: string): string {
  const root = path.posix.relative(path.posix.dirname(htmlOf(file)), '.') || '.';
  const menu = KINDS.map(([kind, pattern]) => {
    const links = pages
      .filter((page) => pattern.test(page.file))
      .map((page) => `<a href="${root}/${htmlOf(page.file)}">${page.title}</a>`);
    return `<h4>${kind}</h4>${links.join('')}`;
  });
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${title}</title><link rel="stylesheet" href="${root}/style.css">
<nav><input type="search" placeholder="Search" aria-label="Search" data-root="${root}"><div id="hits"></div>${menu.join('')}</nav>
<main>${body}</main>
<script src="${root}/search.js"></script></html>
`;
}

const SEARCH = `const field = document.querySelector('input[type=search]');
field.addEventListener('input', () => {
  const hits = document.getElementById('hits');
  hits.replaceChildren(...searchPages(PASSAGES, field.value).slice(0, 12).map(({ page, title, heading }) => {
    const link = document.createElement('a');
    link.href = field.dataset.root + '/' + page;
    link.textContent = heading === title ? title : title + ': ' + heading;
    return link;
  }));
});
`;

const STYLE = `body { margin: 0; display: flex; font: 16px/1.5 system-ui, sans-serif; color-scheme: light dark; }
nav { box-sizing: border-box; width: 18rem; height: 100vh; overflow: auto; position: sticky; top: 0; padding: 1rem; flex: none; }
nav a { display: block; text-decoration: none; font-size: 14px; padding: 1px 0; } nav input { width: 100%; }
main { padding: 1rem 2rem; max-width: 60rem; min-width: 0; }
pre { overflow: auto; padding: .7rem; border: 1px solid #8884; } table { border-collapse: collapse; display: block; overflow: auto; }
td, th { border: 1px solid #8884; padding: .2rem .5rem; text-align: left; vertical-align: top; } img { max-width: 100%; }
#hits:not(:empty) { border-bottom: 1px solid #8884; margin: .5rem 0; }
@media (max-width: 50rem) { body { display: block; } nav { width: auto; height: auto; position: static; } }
`;

/** Every link between pages of a built site that leads nowhere. */
export function deadLinks(folder: string): string[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.html'),
  );
  return files.flatMap((name) => {
    const html = readFileSync(path.join(folder, name), 'utf8');
    const links = [...html.matchAll(/<a href="(?![a-z]+:)([^"#]*)(?:#([^"]*))?"/g)];
    return links.flatMap(([, to = '', anchor]) => {
      const target = to === '' ? name : path.join(path.dirname(name), to);
      const isThere = existsSync(path.join(folder, target));
      const ids = isThere && anchor !== undefined ? readFileSync(path.join(folder, target), 'utf8') : '';
      const isAnchor = anchor === undefined || ids.includes(`id="${anchor}"`);
      return isThere && isAnchor ? [] : [`${name}: ${to}${anchor === undefined ? '' : `#${anchor}`}`];
    });
  });
}
