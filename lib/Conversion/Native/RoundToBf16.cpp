//===- RoundToBf16.cpp - The function that rounds f32 to bf16 -------------===//

#include "RoundToBf16.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

namespace neuroshard {

void defineRoundToBf16(llvm::Module &code) {
  llvm::IRBuilder<> builder(code.getContext());
  auto *type =
      llvm::FunctionType::get(builder.getBFloatTy(), builder.getFloatTy(),
                              /*isVarArg=*/false);
  auto *function = llvm::Function::Create(
      type, llvm::GlobalValue::ExternalLinkage, "__truncsfbf2", code);
  function->setVisibility(llvm::GlobalValue::HiddenVisibility);
  function->setSection(".text.__truncsfbf2");
  builder.SetInsertPoint(
      llvm::BasicBlock::Create(code.getContext(), "", function));

  // A carry out of the lower half rounds up; half of it is a tie, which goes to
  // the even upper half.
  llvm::Value *value = function->getArg(0);
  llvm::Value *bits = builder.CreateBitCast(value, builder.getInt32Ty());
  llvm::Value *odd = builder.CreateAnd(builder.CreateLShr(bits, 16), 1);
  llvm::Value *rounded =
      builder.CreateAdd(builder.CreateAdd(bits, builder.getInt32(0x7fff)), odd);
  // A NaN whose payload lies in the lower half stays one by its quiet bit.
  llvm::Value *lower = builder.CreateAnd(bits, 0xffff);
  llvm::Value *quiet =
      builder.CreateSelect(builder.CreateIsNotNull(lower),
                           builder.getInt32(0x400000), builder.getInt32(0));
  llvm::Value *upper =
      builder.CreateSelect(builder.CreateFCmpUNO(value, value),
                           builder.CreateOr(bits, quiet), rounded);
  llvm::Value *half =
      builder.CreateTrunc(builder.CreateLShr(upper, 16), builder.getInt16Ty());
  builder.CreateRet(builder.CreateBitCast(half, builder.getBFloatTy()));
}

} // namespace neuroshard
