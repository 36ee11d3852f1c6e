import { readFileSync } from 'node:fs';

/** Evaluated in the measured page; defines `bench.` with the functions of `in-page.js`. */
export const IN_PAGE = `(() => {${readFileSync(new URL('./in-page.js', import.meta.url), 'utf8')}})()`;
