/** Reads Markdown. The build replaces this file with the library itself: `scripts/bundle-parts.ts`. */
export { Lexer, type MarkedToken, type Token, type Tokens } from 'marked';
