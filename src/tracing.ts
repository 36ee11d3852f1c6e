/**
 * What a process tells a tracing backend: spans, as the semantic conventions for generative AI name them. Free of any
 * vendor's types; `runtime/otel.ts` is the adapter.
 *  T1  Methods never wait and never throw.
 *  T2  Attributes hold ids, names, numbers and codes. Words of people and models only where `content` says so.
 */
export interface Tracer {
  /** Whether words may be told. */
  readonly content: boolean;
  /** Begins a span; without a parent it is the first of a trace, or a child of what the application has under way. */
  span(name: string, options: SpanOptions): Span;
}

export interface SpanOptions {
  /** `client`: it waits for another process. */
  kind: 'internal' | 'client';
  attributes: SpanAttributes;
  parent?: Span | undefined;
}

export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[]>>;

export interface Span {
  set(attributes: SpanAttributes): void;
  /** What is begun within, by instrumented libraries too, becomes its child. */
  within<T>(work: () => T): T;
  /** With a code where it did not end well. A span ends once. */
  end(failure?: string): void;
}

export interface TracingOptions {
  /** Whether spans hold prompts, answers, and arguments and results of tools. Default false. */
  content?: boolean;
}
