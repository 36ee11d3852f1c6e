import { readFileSync } from 'node:fs';

/** Evaluated in a page that is measured; then `bench.` has the functions of `in-page.js`. */
export const IN_PAGE = `(() => {${readFileSync(new URL('./in-page.js', import.meta.url), 'utf8')}})()`;
