/**
 * Returns a function that collects questions for `withinMs` and asks the database all of them at once. Many concurrent visits then
 * cost one query instead of one each. The answers have the order of the questions.
 */
export function gather<Question, Answer>(
  answerAll: (questions: readonly Question[]) => Promise<readonly Answer[]>,
  withinMs: number,
): (question: Question) => Promise<Answer> {
  let waiting: {
    readonly question: Question;
    readonly resolve: (answer: Answer) => void;
    readonly reject: (error: unknown) => void;
  }[] = [];
  const send = async () => {
    const asked = waiting;
    waiting = [];
    try {
      const answers = await answerAll(asked.map(({ question }) => question));
      for (const [index, { resolve }] of asked.entries()) resolve(answers[index] as Answer);
    } catch (error) {
      for (const { reject } of asked) reject(error);
    }
  };
  return (question) =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) setTimeout(send, withinMs);
      waiting.push({ question, resolve, reject });
    });
}
